#include "capture/stack_tables.h"

#include <cstring>

#include "capture/lane.h"
#include "capture/native_stack.h"
#include "capture/source_files.h"
#include "core/stacks.h"

namespace memscope::capture {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

// Stands where native frames could not be read.
constexpr std::string_view kMissingFrames = "(native frames are missing here)";

std::string_view hex_text(const uint8_t* bytes, size_t count, char* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < count; ++i) {
    out[2 * i] = kDigits[bytes[i] >> 4];
    out[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return {out, 2 * count};
}

uint64_t hash_text(std::string_view text) {
  uint64_t hash = text.size() + 1;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    hash = mix(hash, word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, text.data() + at, text.size() - at);
  hash = mix(hash, tail);
  return hash != 0 ? hash : 1;
}

// Defines what is new on the way from the outermost frame in. `full` is set where a table has no
// room; `lost` where a record found no slot.
class Definer {
 public:
  explicit Definer(Lane& lane) : lane_(lane), tables_(lane.stacks) {}

  bool full = false;
  bool lost = false;

  uint32_t stack(const RawFrame* frames, size_t count) {
    uint32_t node = 0;
    for (size_t i = count; i-- > 0;) {
      const uint32_t frame = frame_id(frames[i]);
      if (frame == 0) return 0;
      const uint64_t key = uint64_t{node} << 32 | frame;  // frame is not 0, so neither is the key
      uint32_t next = tables_.nodes.find(key);
      if (next == 0) {
        if (tables_.nodes.full()) return none(full);
        next = tables_.next_node;
        if (!write_cold(lane_, StackRecord{.id = next, .parent = node, .frame = frame})) {
          return none(lost);
        }
        tables_.nodes.insert(key, next);
        ++tables_.next_node;
      }
      node = next;
    }
    return node;
  }

 private:
  static uint32_t none(bool& why) {
    why = true;
    return 0;
  }

  uint32_t frame_id(const RawFrame& raw) {
    if ((raw.code & kNativeFrame) != 0) return native_frame_id(raw);
    const uint64_t key = python_stack::frame_key(raw);
    if (const uint32_t known = tables_.frames.find(key)) return known;
    if (tables_.frames.full()) return none(full);
    char scratch[4096];
    python_stack::Resolved resolved;
    if (!python_stack::resolve(raw, scratch, sizeof(scratch), &resolved)) {
      resolved = {.file = "?", .function = "?"};
    }
    const uint32_t file = string_id(resolved.file);
    const uint32_t function = file != 0 ? string_id(resolved.function) : 0;
    if (function == 0) return 0;
    source_files::want(resolved.file);
    const uint32_t id = tables_.next_frame;
    const FrameRecord record{.id = id,
                             .kind = static_cast<uint64_t>(FrameKind::kPython),
                             .file = file,
                             .function = function,
                             .line = resolved.line,
                             .end_line = resolved.end_line,
                             .first_line = resolved.first_line};
    if (!write_cold(lane_, record)) return none(lost);
    tables_.frames.insert(key, id);
    ++tables_.next_frame;
    return id;
  }

  // A native frame has no name yet: its place in the file tells it, offline.
  uint32_t native_frame_id(const RawFrame& raw) {
    const uint64_t hash = mix(mix(~uint64_t{0}, raw.code), raw.instruction);
    const uint64_t key = hash != 0 ? hash : 1;
    if (const uint32_t known = tables_.frames.find(key)) return known;
    if (tables_.frames.full()) return none(full);
    FrameRecord record{.id = tables_.next_frame, .kind = static_cast<uint64_t>(FrameKind::kNative)};
    Module module;
    if (native_stack::module_of(raw, &module)) {
      char build_id[2 * Module::kMaxBuildId];
      record.file = string_id(module.path);
      if (record.file == 0) return 0;
      const std::string_view hex = hex_text(module.build_id, module.build_id_size, build_id);
      if (!hex.empty() && (record.module = string_id(hex)) == 0) return 0;
      record.offset = (raw.code & ~kNativeFrame) - module.bias;
    } else {
      record.file = string_id("?");
      record.function = record.file != 0 ? string_id(kMissingFrames) : 0;
      if (record.function == 0) return 0;
    }
    if (!write_cold(lane_, record)) return none(lost);
    tables_.frames.insert(key, record.id);
    ++tables_.next_frame;
    return static_cast<uint32_t>(record.id);
  }

  uint32_t string_id(std::string_view text) {
    const uint64_t key = hash_text(text);
    if (const uint32_t known = tables_.strings.find(key)) return known;
    if (tables_.strings.full()) return none(full);
    const uint32_t id = tables_.next_string;
    if (!write_cold(lane_, StringRecord{.id = id, .text = text})) return none(lost);
    tables_.strings.insert(key, id);
    ++tables_.next_string;
    return id;
  }

  Lane& lane_;
  StackTables& tables_;
};

}  // namespace

uint32_t define_stack(Lane& lane, size_t count, uint64_t hash) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!lane.stacks.raw.full()) {
      Definer definer(lane);
      const uint32_t node = definer.stack(lane.stacks.walked, count);
      if (node != 0) lane.stacks.raw.insert(hash, node);
      if (!definer.full) return node;
    }
    lane.stacks.forget();
    lane.announced = lane.numbered = false;
    if (!announce(lane)) return 0;
  }
  return 0;
}

void FixedTable::attach(void* memory, size_t places) {
  keys_ = static_cast<uint64_t*>(memory);
  ids_ = reinterpret_cast<uint32_t*>(keys_ + places);
  mask_ = places - 1;
  used_ = 0;
}

void FixedTable::clear() {
  if (used_ != 0) std::memset(keys_, 0, (mask_ + 1) * sizeof(uint64_t));
  used_ = 0;
}

void FixedTable::insert(uint64_t key, uint32_t id) {
  size_t at = key & mask_;
  while (keys_[at] != 0) at = (at + 1) & mask_;
  keys_[at] = key;
  ids_[at] = id;
  ++used_;
}

size_t StackTables::bytes_for(const Sizes& sizes) {
  return FixedTable::bytes_for(sizes.raw) + FixedTable::bytes_for(sizes.nodes) +
         FixedTable::bytes_for(sizes.frames) + FixedTable::bytes_for(sizes.strings) +
         max_frames_for(sizes) * sizeof(RawFrame);
}

void StackTables::attach(void* memory, const Sizes& sizes) {
  auto* at = static_cast<char*>(memory);
  const auto take = [&at](size_t bytes) {
    char* taken = at;
    at += bytes;
    return taken;
  };
  raw.attach(take(FixedTable::bytes_for(sizes.raw)), sizes.raw);
  nodes.attach(take(FixedTable::bytes_for(sizes.nodes)), sizes.nodes);
  frames.attach(take(FixedTable::bytes_for(sizes.frames)), sizes.frames);
  strings.attach(take(FixedTable::bytes_for(sizes.strings)), sizes.strings);
  max_frames = max_frames_for(sizes);
  walked = reinterpret_cast<RawFrame*>(take(max_frames * sizeof(RawFrame)));
}

void StackTables::forget() {
  raw.clear();
  nodes.clear();
  frames.clear();
  strings.clear();
  next_node = next_frame = next_string = 1;
}

uint32_t python_stack_node(Lane& lane) noexcept {
  uint64_t hash = 0;
  bool truncated = false;
  StackTables& tables = lane.stacks;
  const size_t count = python_stack::walk(tables.walked, tables.max_frames, &hash, &truncated);
  if (count == 0) return 0;
  if (hash == 0) hash = 1;
  if (const uint32_t node = tables.raw.find(hash)) return node;
  return define_stack(lane, count, hash);
}

}  // namespace memscope::capture
