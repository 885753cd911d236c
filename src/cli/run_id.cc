#include "cli/run_id.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string_view>

namespace memscope::cli {
namespace {

std::string stamp(std::time_t time) {
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(time));
}

// proc(5): field 22 of stat is the start in ticks since boot; btime of /proc/stat is when that was.
std::time_t start_time(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(stat, line);
  const size_t name_end = line.rfind(')');  // the name may hold blanks and parentheses
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  std::ifstream system("/proc/stat");
  std::time_t boot = 0;
  for (std::string word; system >> word;) {
    if (word == "btime" && system >> boot) break;
  }
  const double ticks = std::strtod(field.c_str(), nullptr);
  return boot + static_cast<std::time_t>(ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace

RunId make_run_id() {
  const char* given = std::getenv("MSMEMSCOPE_RUN_ID");
  if (given != nullptr && *given != '\0') return {given, true};
  if (std::getenv("RANK") != nullptr) {
    const pid_t parent = ::getppid();
    return {fmt::format("{}-{}", stamp(start_time(parent)), parent), true};
  }
  return {fmt::format("{}-{}", stamp(std::time(nullptr)), ::getpid()), false};
}

int rank_from_environment() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string_view text = value;
    int rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error == std::errc{} && end == text.data() + text.size() && rank >= 0) return rank;
  }
  return -1;
}

}  // namespace memscope::cli
