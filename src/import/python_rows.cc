#include "import/python_rows.h"

#include <array>
#include <fstream>
#include <string>
#include <string_view>

namespace memscope {
namespace {

constexpr size_t kCells = 5;

// FuncInfo may have commas and is not quoted: the four numbers are at the line's end.
bool split(std::string_view line, std::array<std::string_view, kCells>& cells) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (size_t i = kCells - 1; i > 0; --i) {
    const size_t comma = line.rfind(',');
    if (comma == std::string_view::npos) return false;
    cells[i] = line.substr(comma + 1);
    line = line.substr(0, comma);
  }
  if (line.size() >= 2 && line.front() == '"' && line.back() == '"') {
    line = line.substr(1, line.size() - 2);
  }
  cells[0] = line;
  return true;
}

}  // namespace

void read_python_csv(const std::filesystem::path& path, RowEvents& events) {
  std::ifstream file(path, std::ios::binary);
  constexpr size_t kMaxLine = 1 << 20;
  std::string line(kMaxLine, '\0');
  std::array<std::string_view, kCells> cells;
  for (;;) {
    file.getline(line.data(), static_cast<std::streamsize>(line.size()));
    const auto got = static_cast<size_t>(file.gcount());
    if (got == 0) return;
    if (file.fail() && !file.eof()) {
      file.clear();  // a line that is too long comes in pieces, and none of them splits
      continue;
    }
    std::string_view text(line.data(), got - (file.eof() ? 0 : 1));
    if (text.starts_with("FuncInfo,") || !split(text, cells)) continue;
    events.add_python(cells[0], cells[1], cells[2], cells[3], cells[4]);
  }
}

void read_python_tables(const DbFile& file, RowEvents& events) {
  constexpr std::array<std::string_view, kCells> kNames = {
      "FuncInfo", "StartTime(ns)", "EndTime(ns)", "Thread Id", "Process Id"};
  const auto tables = file.tables("python_trace_");
  if (!tables) return;
  for (const std::string& name : tables.value()) {
    auto rows = file.table(name);
    if (!rows) continue;
    std::array<size_t, kCells> place{0, 1, 2, 3, 4};
    const std::vector<std::string> columns = rows.value().columns();
    for (size_t i = 0; i < columns.size(); ++i) {
      for (size_t cell = 0; cell < kCells; ++cell) {
        if (columns[i] == kNames[cell]) place[cell] = i;
      }
    }
    while (rows.value().next()) {
      std::array<std::string_view, kCells> cells;
      for (size_t cell = 0; cell < kCells; ++cell) cells[cell] = rows.value().text(place[cell]);
      events.add_python(cells[0], cells[1], cells[2], cells[3], cells[4]);
    }
  }
}

}  // namespace memscope
