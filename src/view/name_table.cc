#include "view/name_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

#include "core/mix_hash.h"
#include "core/text_hash.h"
#include "view/table_io.h"

namespace memscope::view {
namespace {

constexpr uint64_t kMagic = 0x3165'6d61'4e53'4d4d;  // "MMSName1"
constexpr uint32_t kVersion = 1;

std::string name_of(std::string_view path, std::string_view build_id) {
  std::string name(path);
  name += '\0';
  name += build_id;
  return name;
}

uint64_t key_of(const Frame& frame) {
  return uint64_t{frame.file.value} << 32 | frame.module.value;
}

// Calls each(frame) for every native frame whose place is known; a frame of several stacks may come
// again.
template <typename Each>
void for_each_native(const InputIndex& index, Each each) {
  for (uint32_t stack = 1; stack < index.stacks.size(); ++stack) {
    const Frame& frame = index.stacks.frame(index.stacks.innermost(StackId(stack)));
    if (frame.kind == FrameKind::kNative && frame.offset != 0) each(frame);
  }
}

void add_file(TextHash& hash, const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return hash.add("none");
  hash.add(std::to_string(status.st_size) + ' ' + std::to_string(status.st_mtim.tv_sec) + ' ' +
           std::to_string(status.st_mtim.tv_nsec));
}

}  // namespace

// -- the table ------------------------------------------------------------------------------------

uint32_t NameTable::object(std::string_view path, std::string_view build_id) const {
  const auto known = by_name_.find(name_of(path, build_id));
  return known == by_name_.end() ? 0 : known->second;
}

bool NameTable::knows(uint32_t object, uint64_t offset) const {
  return objects_[object].answers.count(offset) != 0;
}

std::span<const SourceFrame> NameTable::find(uint32_t object, uint64_t offset) const {
  const auto& answers = objects_[object].answers;
  const auto known = answers.find(offset);
  if (known == answers.end()) return {};
  return std::span(frames_).subspan(known->second.first, known->second.count);
}

uint32_t NameTable::add_object(std::string_view path, std::string_view build_id) {
  const auto [at, fresh] =
      by_name_.emplace(name_of(path, build_id), static_cast<uint32_t>(objects_.size()));
  if (fresh) objects_.push_back({.path = std::string(path), .build_id = std::string(build_id)});
  return at->second;
}

void NameTable::add(uint32_t object, uint64_t offset, std::span<const SourceFrame> frames) {
  const auto [at, fresh] = objects_[object].answers.emplace(
      offset, Answer{static_cast<uint32_t>(frames_.size()), static_cast<uint32_t>(frames.size())});
  if (!fresh) return;
  const auto text = [&](std::string_view piece) { return strings_.text(strings_.intern(piece)); };
  for (const SourceFrame& frame : frames) {
    frames_.push_back({text(frame.function), text(frame.file), frame.line, frame.inlined});
  }
}

BoundNames::BoundNames(std::shared_ptr<const NameTable> names, const InputIndex& index)
    : names_(std::move(names)) {
  for_each_native(index, [&](const Frame& frame) {
    const auto [at, fresh] = objects_.emplace(key_of(frame), 0);
    if (fresh) {
      at.value() = names_->object(index.strings.text(frame.file), index.strings.text(frame.module));
    }
  });
}

std::span<const SourceFrame> BoundNames::find(const Frame& frame) const {
  const auto at = objects_.find(key_of(frame));
  if (at == objects_.end() || frame.offset == 0) return {};
  return names_->find(at->second, frame.offset);
}

// -- made of object files -------------------------------------------------------------------------

NameMaker::NameMaker(SymbolOptions options) : symbolizer_(std::move(options)) {}

std::shared_ptr<const NameTable> NameMaker::make(const InputIndex& index) {
  std::vector<uint64_t> bytes(index.stacks.size());
  for (const auto& pool : index.pools) {
    for (uint32_t block = 1; block <= pool->blocks(); ++block) {
      const uint32_t stack = pool->stack[block];
      if (stack < bytes.size()) bytes[stack] += pool->size(block);
    }
  }
  std::vector<uint32_t> stacks;
  for (uint32_t stack = 1; stack < bytes.size(); ++stack) stacks.push_back(stack);
  std::stable_sort(stacks.begin(), stacks.end(),
                   [&](uint32_t a, uint32_t b) { return bytes[a] > bytes[b]; });
  NativeNames natives(symbolizer_, index.stacks, index.strings, index.side);
  std::vector<NativeAddress> addresses;
  // Stacks share their outer frames: once each.
  std::vector<bool> added(index.stacks.size());
  for (uint32_t stack : stacks) {
    for (; stack != 0 && !added[stack]; stack = index.stacks.parent(StackId(stack)).value) {
      added[stack] = true;
      natives.add_frame(index.stacks.frame(index.stacks.innermost(StackId(stack))), addresses);
    }
  }
  symbolizer_.resolve(addresses);
  auto names = std::make_shared<NameTable>();
  for_each_native(index, [&](const Frame& frame) {
    const uint32_t object =
        names->add_object(index.strings.text(frame.file), index.strings.text(frame.module));
    names->add(object, frame.offset, natives.find(frame));
  });
  return names;
}

bool lacks_names(const InputIndex& index, const NameTable* names) {
  bool lacks = false;
  tsl::robin_map<uint64_t, uint32_t, MixHash> objects;
  for_each_native(index, [&](const Frame& frame) {
    if (lacks) return;
    if (names == nullptr) {
      lacks = true;
      return;
    }
    const auto [at, fresh] = objects.emplace(key_of(frame), 0);
    if (fresh) {
      at.value() = names->object(index.strings.text(frame.file), index.strings.text(frame.module));
    }
    lacks = at->second == 0 || !names->knows(at->second, frame.offset);
  });
  return lacks;
}

std::string names_key(const InputIndex& index, const SymbolOptions& options) {
  std::set<std::pair<uint32_t, uint32_t>> objects;
  for_each_native(
      index, [&](const Frame& frame) { objects.emplace(frame.file.value, frame.module.value); });
  if (objects.empty()) return "";
  TextHash hash;
  hash.add(options.sysroot);
  for (const std::string& path : options.debug_paths) hash.add(path);
  hash.add(options.debuginfod ? "asks" : "");
  std::vector<std::string> roots = options.debug_paths;
  if (!options.sysroot.empty()) roots.push_back(options.sysroot + "/usr/lib/debug");
  roots.emplace_back("/usr/lib/debug");
  for (const auto& [file, module] : objects) {
    const std::string path(index.strings.text(StringId(file)));
    const std::string build_id(index.strings.text(StringId(module)));
    hash.add(path);
    hash.add(build_id);
    add_file(hash, options.sysroot + path);
    if (build_id.size() <= 2) continue;
    for (const std::string& root : roots) {
      add_file(hash,
               root + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug");
    }
  }
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return text.data();
}

// -- kept -----------------------------------------------------------------------------------------

bool save_names(const NameTable& names, const std::filesystem::path& path) {
  TableWriter io;
  io_heading(io, kMagic, kVersion);
  io(uint64_t{names.strings_.size()});
  for (uint32_t i = 1; i < names.strings_.size(); ++i) {
    io(std::string(names.strings_.text(StringId(i))));
  }
  tsl::robin_map<std::string_view, uint32_t> numbers;
  for (uint32_t i = 0; i < names.strings_.size(); ++i) {
    numbers.emplace(names.strings_.text(StringId(i)), i);
  }
  io(uint64_t{names.objects_.size()});
  for (size_t i = 1; i < names.objects_.size(); ++i) {
    const NameTable::Object& object = names.objects_[i];
    io(object.path), io(object.build_id), io(uint64_t{object.answers.size()});
    for (const auto& [offset, answer] : object.answers) {
      io(offset), io(answer.count);
      for (uint32_t k = 0; k < answer.count; ++k) {
        const SourceFrame& frame = names.frames_[answer.first + k];
        io(numbers.at(frame.function)), io(numbers.at(frame.file)), io(frame.line);
        io(uint8_t{frame.inlined});
      }
    }
  }
  return write_whole(path, io.bytes());
}

std::shared_ptr<const NameTable> load_names(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  TableReader io(bytes);
  if (!io_heading(io, kMagic, kVersion)) return nullptr;
  uint64_t count = 0;
  io(count);
  StringTable strings;
  for (uint64_t i = 1; i < count && io.ok(); ++i) {
    std::string text;
    io(text);
    strings.intern(text);
  }
  auto names = std::make_shared<NameTable>();
  uint64_t objects = 0;
  io(objects);
  std::vector<SourceFrame> frames;
  for (uint64_t i = 1; i < objects && io.ok(); ++i) {
    std::string object_path, build_id;
    uint64_t answers = 0;
    io(object_path), io(build_id), io(answers);
    const uint32_t object = io.ok() ? names->add_object(object_path, build_id) : 0;
    for (uint64_t k = 0; k < answers && io.ok(); ++k) {
      uint64_t offset = 0;
      uint32_t lines = 0;
      io(offset), io(lines);
      frames.clear();
      for (uint32_t line = 0; line < lines && io.ok(); ++line) {
        uint32_t function = 0, source = 0, number = 0;
        uint8_t inlined = 0;
        io(function), io(source), io(number), io(inlined);
        if (function >= strings.size() || source >= strings.size()) return nullptr;
        frames.push_back({strings.text(StringId(function)), strings.text(StringId(source)), number,
                          inlined != 0});
      }
      if (io.ok()) names->add(object, offset, frames);
    }
  }
  return io.ok() && io.at_end() ? names : nullptr;
}

}  // namespace memscope::view
