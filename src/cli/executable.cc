#include "cli/executable.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "trace/program_kind.h"

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxInterpreters = 4;  // as binfmt_script allows

// "#!/usr/bin/env python3" names python3.
std::optional<fs::path> interpreter_of(const fs::path& script) {
  std::ifstream file(script, std::ios::binary);
  file.seekg(2);
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.substr(0, 255));
  std::string interpreter;
  words >> interpreter;
  if (interpreter.empty()) return std::nullopt;
  if (fs::path(interpreter).filename() == "env") {
    std::string name;
    while (words >> name && (name.starts_with('-') || name.find('=') != std::string::npos)) {
    }
    if (!name.empty()) return find_program(name);
  }
  return fs::path(interpreter);
}

}  // namespace

fs::path own_executable() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

std::optional<fs::path> find_program(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), F_OK) == 0 ? std::optional<fs::path>(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const fs::path candidate = fs::path(directory.empty() ? "." : directory) / name;
    std::error_code error;
    if (::access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, error)) {
      return candidate;
    }
  }
  return std::nullopt;
}

namespace {

// What a name stands for in the end, behind all its `#!` lines.
ProgramKind kind_of(const fs::path& program) {
  fs::path current = program;
  for (int i = 0; i < kMaxInterpreters; ++i) {
    std::array<char, 256> interpreter;
    const ProgramKind kind = program_kind(current.c_str(), interpreter.data(), interpreter.size());
    if (kind != ProgramKind::kScript) return kind;
    const auto next = interpreter_of(current);
    if (!next) break;
    current = *next;
  }
  return ProgramKind::kOrdinary;
}

}  // namespace

std::optional<std::string> why_not_traceable(const fs::path& program) {
  const char* why = why_untraced(kind_of(program));
  return why == nullptr ? std::nullopt : std::optional<std::string>(why);
}

bool preload_would_harm(const fs::path& program) {
  return preload_harms(kind_of(program));
}

}  // namespace memscope::cli
