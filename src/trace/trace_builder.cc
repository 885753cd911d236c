#include "trace/trace_builder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace memscope {
namespace {

constexpr size_t kSlotWords = kSlotRecordBytes / sizeof(uint64_t);
constexpr size_t kMaxChunkWords = kMaxChunkBytes / sizeof(uint64_t);

}  // namespace

LaneBuilder::LaneBuilder(TraceBuilder& builder, uint32_t number)
    : builder_(&builder), number_(number) {}

// Room for `words` more words, and for a time record before them.
uint64_t* LaneBuilder::room(uint64_t ticks, size_t words) {
  if (!begun_) {
    begun_ = true;
    base_ticks_ = piece_ticks_ = ticks_ = ticks;
  }
  const size_t limit = number_ == 0 ? kMaxChunkWords : kSlotWords;
  // Lane 0 is sealed at about a slot's size, but a record may be as large as a chunk.
  const size_t full = std::min(limit, kSlotWords);
  constexpr size_t kTimeWords = 2;
  if (used_ != 0 && used_ + words + kTimeWords > full) next_slot();
  if (used_ + words + kTimeWords > words_.size()) words_.resize(used_ + words + kTimeWords);
  if (ticks > ticks_ && ticks - ticks_ > UINT32_MAX) {
    words_[used_] = hot_word(Kind::kTime, 0, 0);
    words_[used_ + 1] = ticks;
    ticks_ = ticks;
    commit(static_cast<uint8_t>(Kind::kTime), kTimeWords);
  }
  return words_.data() + used_;
}

uint32_t LaneBuilder::take_dt(uint64_t ticks) {
  const uint64_t dt = ticks > ticks_ ? ticks - ticks_ : 0;
  ticks_ += dt;
  return static_cast<uint32_t>(dt);
}

void LaneBuilder::commit(uint8_t kind, size_t words) {
  used_ += words;
  if (kind < 64) piece_kinds_ |= uint64_t{1} << kind;
  ++builder_->records_;
}

uint64_t LaneBuilder::string(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto found = strings_.find(text); found != strings_.end()) return found->second;
  const uint64_t id = strings_.size() + 1;
  record(ticks_, StringRecord{.id = id, .text = text});
  strings_.emplace(text, id);
  return id;
}

uint64_t LaneBuilder::frame(const FrameSpec& spec) {
  const uint32_t end_line = spec.end_line != 0 ? spec.end_line : spec.line;
  const FrameKey key{string(spec.file),
                     string(spec.function),
                     string(spec.module),
                     spec.line,
                     end_line,
                     spec.first_line,
                     static_cast<uint64_t>(spec.kind),
                     spec.offset};
  if (const auto found = frames_.find(key); found != frames_.end()) return found->second;
  const uint64_t id = frames_.size() + 1;
  record(ticks_, FrameRecord{.id = id,
                             .kind = key.kind,
                             .file = key.file,
                             .function = key.function,
                             .line = key.line,
                             .end_line = key.end_line,
                             .first_line = key.first_line,
                             .module = key.module,
                             .offset = key.offset});
  frames_.emplace(key, id);
  return id;
}

uint32_t LaneBuilder::stack(std::span<const FrameSpec> frames) {
  uint32_t node = 0;
  for (const FrameSpec& spec : frames) {
    const uint64_t in = frame(spec);
    const uint64_t key = uint64_t{node} << 32 | in;
    const auto found = stacks_.find(key);
    if (found != stacks_.end()) {
      node = found->second;
      continue;
    }
    const auto id = static_cast<uint32_t>(stacks_.size() + 1);
    record(ticks_, StackRecord{.id = id, .parent = node, .frame = in});
    stacks_[key] = id;
    node = id;
  }
  return node;
}

void LaneBuilder::change_hands(uint64_t ticks, uint64_t tid, std::string_view thread_name,
                               bool keeps_ids) {
  record(ticks,
         LaneRecord{.tid = tid, .thread_name = thread_name, .keeps_ids = keeps_ids ? 1u : 0u});
  if (keeps_ids) return;
  strings_.clear();
  frames_.clear();
  stacks_.clear();
}

void LaneBuilder::alloc(uint64_t ticks, uint64_t addr, uint64_t size, Where where, uint32_t stack) {
  record(ticks, AllocRecord{addr, pack_sized(size, where.packed())}, stack);
}

void LaneBuilder::free(uint64_t ticks, uint64_t addr, Where where) {
  record(ticks, FreeRecord{addr}, where.packed());
}

void LaneBuilder::pool_alloc(uint64_t ticks, uint64_t addr, uint64_t size, Where where,
                             uint32_t stack, uint64_t allocated, uint64_t reserved) {
  record(ticks, PoolAllocRecord{addr, pack_sized(size, where.packed()), allocated, reserved},
         stack);
}

void LaneBuilder::pool_free(uint64_t ticks, uint64_t addr, Where where, uint64_t allocated,
                            uint64_t reserved) {
  record(ticks, PoolFreeRecord{addr, allocated, reserved}, where.packed());
}

void LaneBuilder::raw(uint64_t ticks, std::span<const uint64_t> words) {
  uint64_t* out = room(ticks, words.size());
  std::copy(words.begin(), words.end(), out);
  out[0] = (out[0] & UINT32_MAX) | uint64_t{take_dt(ticks)} << 32;
  commit(static_cast<uint8_t>(words[0] & 0xff), words.size());
}

void LaneBuilder::seal() {
  if (used_ == sealed_) return;
  ChunkMeta meta;
  meta.lane = number_;
  meta.from = static_cast<uint32_t>(sealed_ * sizeof(uint64_t));
  meta.lane_seq = lane_seq_;
  meta.base_ticks = piece_ticks_;
  meta.last_ticks = ticks_;
  meta.kinds = piece_kinds_;
  meta.slot_index = number_ == 0 ? ~uint64_t{0} : number_;
  builder_->append(meta, std::span(words_).subspan(sealed_, used_ - sealed_));
  sealed_ = used_;
  piece_ticks_ = ticks_;
  kinds_ |= piece_kinds_;
  piece_kinds_ = 0;
}

void LaneBuilder::next_slot() {
  seal();
  used_ = sealed_ = 0;
  kinds_ = 0;
  ++lane_seq_;
  base_ticks_ = piece_ticks_ = ticks_;
}

TraceBuilder::TraceBuilder(const std::filesystem::path& directory, const TraceOptions& options)
    : directory_(directory),
      options_(options),
      buffer_(LogWriter::kBufferBytes),
      log_(buffer_, options.level) {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  const std::string path = (directory_ / kLogName).string();
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    fail("cannot create " + path);
    return;
  }
  LogHeader header{};
  header.major = kFormatMajor;
  header.minor = kFormatMinor;
  header.tick_source = static_cast<uint32_t>(options.ticks);
  header.pid = options.pid;
  header.ticks = options.anchor.ticks;
  header.mono_ns = options.anchor.mono_ns;
  header.real_ns = options.anchor.real_ns;
  if (!log_.open(fd_, header)) fail("cannot write " + path);
  if (!options.process_record) return;
  agent().record(options.anchor.ticks, ProcessRecord{.pid = options.pid,
                                                     .host = options.host,
                                                     .argv0 = options.argv0,
                                                     .command = options.argv0,
                                                     .rank = options.rank,
                                                     .agent = options.agent,
                                                     .python = "3.11.2",
                                                     .start_real_ns = options.anchor.real_ns});
}

TraceBuilder::~TraceBuilder() {
  if (fd_ >= 0) close(fd_);
}

LaneBuilder& TraceBuilder::lane(uint32_t number, uint64_t tid, std::string_view thread_name,
                                uint64_t ticks) {
  auto& entry = lanes_[number];
  if (!entry) {
    entry.reset(new LaneBuilder(*this, number));
    if (number != 0) {
      entry->record(std::max(ticks, options_.anchor.ticks),
                    LaneRecord{.tid = tid, .thread_name = thread_name});
    }
  }
  return *entry;
}

void TraceBuilder::append(const ChunkMeta& meta, std::span<const uint64_t> words) {
  if (!error_.empty()) return;
  if (!log_.append(meta, std::as_bytes(words))) {
    fail("cannot write " + (directory_ / kLogName).string());
  }
}

void TraceBuilder::fail(const std::string& what) {
  if (error_.empty()) error_ = what + ": " + std::strerror(errno);
}

Result<void> TraceBuilder::close_log() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  log_.release();
  if (!error_.empty()) return Error{error_};
  return {};
}

Result<void> TraceBuilder::finish() {
  if (!closed_) {
    for (auto& [number, lane] : lanes_) lane->seal();
  }
  closed_ = true;
  return close_log();
}

Result<void> TraceBuilder::kill() {
  agent().seal();  // lane 0 is never in the slab
  closed_ = true;
  if (auto written = write_slab(); !written) return written;
  return close_log();
}

Result<void> TraceBuilder::write_slab() {
  const std::string path = (directory_ / kSlabName).string();
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Error{"cannot create " + path + ": " + std::strerror(errno)};
  SlabHeader header{kSlabMagic, kFormatMajor, kFormatMinor, options_.pid, 0, kSlotBytes};
  std::vector<uint64_t> bytes(kSlabHeaderBytes / sizeof(uint64_t));
  for (const auto& [number, lane] : lanes_) {
    if (number == 0) continue;
    const size_t at = bytes.size();
    bytes.resize(at + kSlotBytes / sizeof(uint64_t));
    const uint64_t anchor_ns = lane->base_ticks_ - options_.anchor.ticks;
    const auto state = static_cast<uint32_t>(SlotState::kOwned);
    bytes[at] = uint64_t{number} << 32 | state;
    bytes[at + 1] = lane->lane_seq_;
    bytes[at + 2] = lane->base_ticks_;
    bytes[at + 3] = options_.anchor.mono_ns + anchor_ns;
    bytes[at + 4] = options_.anchor.real_ns + anchor_ns;
    bytes[at + 5] = lane->kinds_ | lane->piece_kinds_;
    std::copy_n(lane->words_.begin(), lane->used_,
                bytes.begin() + static_cast<ptrdiff_t>(at + sizeof(SlotHeader) / 8));
    ++header.slot_count;
  }
  std::memcpy(bytes.data(), &header, sizeof(header));
  const size_t size = bytes.size() * sizeof(uint64_t);
  size_t done = 0;
  while (done < size) {
    const ssize_t wrote =
        write(fd, reinterpret_cast<const char*>(bytes.data()) + done, size - done);
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  const int error = errno;
  close(fd);
  if (done < size) return Error{"cannot write " + path + ": " + std::strerror(error)};
  return {};
}

}  // namespace memscope
