// Programs that processes of a run became or started and that cannot be traced: one line each,
// once, in a file beside the traces.
//
//   run-<id>/untraced.jsonl   {"program":"/sbin/ldconfig","why":"is statically linked","pid":7,
//                              "parent":5}
//
//  * Only where the run's directory is there: a run without a trace leaves nothing behind.
//  * At most 64 KiB, however many programs there are: helpers come by the thousand.
//  * Adding allocates nothing, waits for nothing, keeps errno: the agent adds between vfork() and
//    exec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace memscope {

inline constexpr char kUntracedName[] = "untraced.jsonl";
inline constexpr size_t kMaxUntracedLine = 8192;
// What comes before the run has a directory goes to the launcher (capture/launcher_line.h), under
// its name with this behind it: apart from what else it is told, for these may be many.
inline constexpr char kUntracedSuffix[] = "-untraced";

// `line` ends with a newline; `once` is the part of it by which it is known. False where it is not
// in the file now.
bool add_untraced(const char* run_directory, std::string_view line, std::string_view once) noexcept;
// The part of a line up to its "pid".
std::string_view untraced_key(std::string_view line) noexcept;

struct Untraced {
  std::string program, why;
  int64_t pid = 0;     // of the first one of its kind; 0: unknown
  int64_t parent = 0;  // its parent's
};
// Lines that make no sense are left out.
std::vector<Untraced> read_untraced(const std::filesystem::path& run_directory);

}  // namespace memscope
