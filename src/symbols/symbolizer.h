// Native addresses -> functions, files and lines, long after the program: from the object files.
//
//   Symbolizer symbolizer(options);
//   const uint32_t object = symbolizer.object({path, build_id});
//   symbolizer.resolve(addresses);            // all that will be asked for, the important first
//   symbolizer.find({object, offset})         // innermost first, calls inlined there included
//
// What it promises:
//  * A file speaks for an object only if its build-id is the recorded one (where the object has
//    none: its time of change). Another file at the same path is refused, and notes() says so.
//  * An address is looked up once, whoever asks for it how often.
//  * It ends: what is not known within the budget, all resolve() together, stays unknown.
//  * Object files are not trusted. They are read, never run, by child processes with a limit of
//    memory (see worker.h); one that a damaged file kills takes nothing with it but its answers.
//  * It grows with the different addresses, functions and files, not with the size of the objects.
//
// Not for use by two threads at once. Answers are valid as long as the object.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mix_hash.h"
#include "core/stacks.h"
#include "symbols/look_up.h"
#include "tsl/robin_map.h"

namespace memscope {

// A function's line: where a call is, or the place of a call that the compiler inlined.
struct SourceFrame {
  std::string_view function;  // demangled; "" unknown
  std::string_view file;      // source, absolute where the compiler said so; "" unknown
  uint32_t line = 0;          // 1-based; 0 unknown
  bool inlined = false;       // into the frame after it
  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

struct NativeAddress {
  uint32_t object = 0;
  uint64_t offset = 0;  // as Frame::offset
};

class Symbolizer {
 public:
  explicit Symbolizer(SymbolOptions options) : options_(std::move(options)) {}
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // The same number for the same path and build-id.
  uint32_t object(const ObjectFile& file);
  void resolve(std::span<const NativeAddress> addresses);
  std::span<const SourceFrame> find(NativeAddress address) const;
  // Whether the budget was too small for some.
  bool ran_out() const { return late_ != 0; }
  // What a user should know: a line for each kind of object that could not be used.
  std::vector<std::string> notes() const;

 private:
  struct Object {
    ObjectFile file;
    LookUpStatus status = LookUpStatus::kNotAsked;
    std::string detail;
    tsl::robin_map<uint64_t, uint32_t, MixHash> answers;  // offset -> answers_
  };
  struct Answer {
    uint32_t first = 0, count = 0;  // of frames_
  };
  struct Job;

  std::vector<Job> plan(std::span<const NativeAddress> addresses, unsigned workers);
  // Whether they came to their end.
  bool take(Object& object, std::span<const uint64_t> offsets, const std::string& bytes);

  SymbolOptions options_;
  StringTable strings_;
  std::vector<Object> objects_{1};  // 0: none
  tsl::robin_map<std::string, uint32_t> by_name_;
  std::vector<Answer> answers_{1};
  std::vector<SourceFrame> frames_;
  std::chrono::steady_clock::duration used_{0};
  uint64_t late_ = 0;  // addresses that the budget did not reach
};

}  // namespace memscope
