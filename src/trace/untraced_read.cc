#include <array>
#include <charconv>
#include <fstream>

#include "trace/meta_text.h"
#include "trace/untraced.h"

namespace memscope {
namespace {

int64_t number_member(std::string_view line, std::string_view key) {
  const size_t at = line.rfind(key);
  int64_t number = 0;
  if (at == std::string_view::npos) return 0;
  std::from_chars(line.data() + at + key.size(), line.data() + line.size(), number);
  return number;
}

}  // namespace

std::vector<Untraced> read_untraced(const std::filesystem::path& run_directory) {
  std::vector<Untraced> found;
  std::ifstream file(run_directory / kUntracedName);
  std::array<char, kMaxUntracedLine> line;
  while (file.getline(line.data(), line.size())) {
    std::array<char, kMaxUntracedLine> program, why;
    if (!text_member(line.data(), "program", program.data(), program.size()) ||
        !text_member(line.data(), "why", why.data(), why.size())) {
      continue;
    }
    found.push_back({.program = program.data(),
                     .why = why.data(),
                     .pid = number_member(line.data(), "\"pid\":"),
                     .parent = number_member(line.data(), "\"parent\":")});
  }
  return found;
}

}  // namespace memscope
