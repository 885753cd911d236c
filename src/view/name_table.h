// What the native frames of inputs are called, apart from the inputs: by object file and offset, so
// that it serves a trace that has grown meanwhile, and every process that has the object loaded.
//
//   NameMaker maker(options);                      // one for all inputs of a session
//   auto names = maker.make(index);                // reads object files in child processes: slow
//   auto better = index.named(names);              // the same index, other sites
//   save_names(*names, directory / "names");       // for the next time: load_names()
//
// A NameTable never changes. Which names there are depends on the files of this machine:
// names_key() tells whether they are still the same.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/native_names.h"
#include "symbols/symbolizer.h"
#include "tsl/robin_map.h"
#include "view/input_index.h"

namespace memscope::view {

class NameTable {
 public:
  // 0: no such object.
  uint32_t object(std::string_view path, std::string_view build_id) const;
  // Whether it was looked up; what was found of it may be nothing.
  bool knows(uint32_t object, uint64_t offset) const;
  std::span<const SourceFrame> find(uint32_t object, uint64_t offset) const;

  // Names of functions and files.
  const StringTable& texts() const { return strings_; }

  uint32_t add_object(std::string_view path, std::string_view build_id);
  void add(uint32_t object, uint64_t offset, std::span<const SourceFrame> frames);

 private:
  friend bool save_names(const NameTable& names, const std::filesystem::path& path);
  struct Answer {
    uint32_t first = 0, count = 0;  // of frames_
  };
  struct Object {
    std::string path, build_id;
    tsl::robin_map<uint64_t, Answer, MixHash> answers;  // by offset
  };

  StringTable strings_;  // the frames' texts
  std::vector<Object> objects_{1};
  tsl::robin_map<std::string, uint32_t> by_name_;
  std::vector<SourceFrame> frames_;
};

// A table's names as frames of an index ask for them. Neither may go before this.
class BoundNames : public FrameNames {
 public:
  BoundNames(std::shared_ptr<const NameTable> names, const InputIndex& index);
  std::span<const SourceFrame> find(const Frame& frame) const override;

 private:
  std::shared_ptr<const NameTable> names_;
  tsl::robin_map<uint64_t, uint32_t, MixHash> objects_;  // file << 32 | module -> of the table
};

class NameMaker {
 public:
  explicit NameMaker(SymbolOptions options);
  // Of all native frames of the index; those of its largest stacks come first, should time run out.
  std::shared_ptr<const NameTable> make(const InputIndex& index);
  // Whether all were looked up within the time there is: else they are not worth keeping.
  bool in_time() const { return !symbolizer_.ran_out(); }

 private:
  Symbolizer symbolizer_;
};

// Whether frames of the index are missing from a table (null: an empty one).
bool lacks_names(const InputIndex& index, const NameTable* names);

// What the names of an index depend on, as part of a file's name: its objects, and which files of
// this machine they and their debug files by build-id are. "" where it has no native frames.
std::string names_key(const InputIndex& index, const SymbolOptions& options);

inline constexpr const char* kNamesFile = "names";
bool save_names(const NameTable& names, const std::filesystem::path& path);
// Null where there is none, or it is damaged.
std::shared_ptr<const NameTable> load_names(const std::filesystem::path& path);

}  // namespace memscope::view
