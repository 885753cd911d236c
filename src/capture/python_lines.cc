#include "capture/python_lines.h"

#include <algorithm>
#include <limits>

namespace memscope::capture {
namespace {

// A table has at most 2^31 bytes, and an entry moves the line by less than 2^36, so that sums of
// 64 bits cannot overflow in any table that fits into memory.
SourceLines make_lines(int64_t line, int64_t end_line) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (line < 1 || line > kMost) return {};
  end_line = std::clamp(end_line, line, kMost);
  return {static_cast<uint32_t>(line), static_cast<uint32_t>(end_line)};
}

class LocationBytes {
 public:
  explicit LocationBytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return at_ >= bytes_.size(); }
  uint8_t byte() { return empty() ? 0 : bytes_[at_++]; }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 36 && !empty(); shift += 6) {
      uint8_t next = byte();
      value |= static_cast<uint64_t>(next & 0x3f) << shift;
      if ((next & 0x40) == 0) break;
    }
    return value;
  }
  int64_t signed_varint() {
    uint64_t value = varint();
    auto magnitude = static_cast<int64_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace

SourceLines lines_from_lnotab(std::span<const uint8_t> table, int32_t first_line,
                              int64_t instruction) {
  int64_t line = first_line;
  int64_t address = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    address += table[i];
    if (address > instruction) break;
    line += static_cast<int8_t>(table[i + 1]);
  }
  return make_lines(line, line);
}

SourceLines lines_from_deltas(std::span<const uint8_t> table, int32_t first_line,
                              int64_t instruction) {
  if (instruction < 0) return make_lines(first_line, first_line);
  int64_t line = first_line;
  int64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += table[i];
    auto change = static_cast<int8_t>(table[i + 1]);
    const bool no_line = change == -128;
    if (!no_line) line += change;
    if (instruction < end) return no_line ? SourceLines{} : make_lines(line, line);
  }
  return {};
}

SourceLines lines_from_locations(std::span<const uint8_t> table, int32_t first_line,
                                 int64_t instruction) {
  if (instruction < 0) return make_lines(first_line, first_line);
  constexpr int kCodeUnitBytes = 2;
  LocationBytes bytes(table);
  int64_t line = first_line;
  int64_t end = 0;
  while (!bytes.empty()) {
    const uint8_t head = bytes.byte();
    const int code = (head >> 3) & 15;
    int64_t end_line_after = 0;
    if (code == 14) {
      line += bytes.signed_varint();
      end_line_after = static_cast<int64_t>(bytes.varint());
      bytes.varint();
      bytes.varint();
    } else if (code == 13) {
      line += bytes.signed_varint();
    } else if (code >= 10 && code <= 12) {
      line += code - 10;
      bytes.byte();
      bytes.byte();
    } else if (code < 10) {
      bytes.byte();
    }
    end += ((head & 7) + 1) * kCodeUnitBytes;
    if (instruction < end) {
      return code == 15 ? SourceLines{} : make_lines(line, line + end_line_after);
    }
  }
  return {};
}

SourceLines source_lines(LineTable kind, std::span<const uint8_t> table, int32_t first_line,
                         int64_t instruction) {
  switch (kind) {
    case LineTable::kLnotab:
      return lines_from_lnotab(table, first_line, instruction);
    case LineTable::kDeltas:
      return lines_from_deltas(table, first_line, instruction);
    case LineTable::kLocations:
      return lines_from_locations(table, first_line, instruction);
  }
  return {};
}

}  // namespace memscope::capture
