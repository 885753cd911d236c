// Looks up addresses of one object in its file: the work of a child process (worker.h). Runs
// libdw over bytes nobody vouches for, so that it may crash or never return: call it where that
// does no harm.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace memscope {

struct SymbolOptions {
  std::string sysroot;                   // recorded paths are looked for under it first; "" none
  std::vector<std::string> debug_paths;  // folders with debug files, objects or both
  bool debuginfod = false;               // ask the servers of DEBUGINFOD_URLS
  std::chrono::milliseconds budget{5000};
  unsigned workers = 0;  // processes at a time; 0: as many as processors, up to 8
  uint64_t worker_memory = uint64_t{4} << 30;  // bytes each
};

// A loaded object as the trace names it.
struct ObjectFile {
  std::string path;
  std::string build_id;   // hex; "" none
  uint64_t mtime_ns = 0;  // of the file when it was loaded; 0 unknown
};

enum class LookUpStatus : uint8_t {
  kNotAsked = 0,
  kFound,
  kMissing,     // no file with its build-id
  kMismatch,    // a file at its path, but another build
  kUnknowable,  // neither build-id nor time: no file can be told to be the one
  kDamaged,     // its file is no ELF file, or reading it went wrong
  kLast = kDamaged,
};

// Whom look_up() tells.
class AnswerSink {
 public:
  struct Line {
    std::string function, file;
    uint32_t line = 0;
    bool inlined = false;
  };
  AnswerSink() = default;
  AnswerSink(const AnswerSink&) = delete;
  AnswerSink& operator=(const AnswerSink&) = delete;
  virtual ~AnswerSink() = default;
  // Of offsets[index], innermost first; not called for what nothing is known of.
  virtual void answer(uint32_t index, std::span<const Line> lines) = 0;
  // At most once; `detail`: the file it is about.
  virtual void status(LookUpStatus status, std::string_view detail) = 0;
};

void look_up(const ObjectFile& object, const SymbolOptions& options,
             std::span<const uint64_t> offsets, AnswerSink& sink);

}  // namespace memscope
