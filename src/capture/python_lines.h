// From an instruction's offset to its source lines: decoders of CPython's three line tables.
//
// Guarantees
//  * Pure: a table's bytes, the code's first line and an offset in; lines out. No allocation.
//  * Any bytes are safe: nothing is read beyond the table, no arithmetic overflows, and what cannot
//    be decoded has no line.
//  * The line equals frame.f_lineno's; an instruction that belongs to no line has line 0.
#pragma once

#include <cstdint>
#include <span>

#include "capture/python_layout.h"

namespace memscope::capture {

struct SourceLines {
  uint32_t line = 0;      // 1-based; 0: none
  uint32_t end_line = 0;  // of the instruction's source range; = line where the table has no ends
  bool operator==(const SourceLines&) const = default;
};

// `instruction` in bytes; negative (a frame that has not begun) gives the code's first line.
//
// co_lnotab (3.9, Objects/lnotab_notes.txt): pairs of (bytes of code, signed change of line).
SourceLines lines_from_lnotab(std::span<const uint8_t> table, int32_t first_line,
                              int64_t instruction);
// co_linetable (3.10, PEP 626): the same pairs, but each is the range of one line: the change comes
// before the range, and -128 is a range without a line.
SourceLines lines_from_deltas(std::span<const uint8_t> table, int32_t first_line,
                              int64_t instruction);
// co_linetable (3.11+, Objects/locations.md): entries that begin with 1cccclll, c a code and l the
// number of code units less one:
//
//   c  0–9   same line; one byte of columns
//     10–12  line + (c - 10); two bytes of columns
//     13     signed varint: change of line; no columns
//     14     signed varint: change of line; varints: lines to the end, column + 1, end column + 1
//     15     no line
//
// A varint holds 6 bits a byte, lowest first, and 0x40 says that more follow; the lowest bit of a
// signed one is the sign.
SourceLines lines_from_locations(std::span<const uint8_t> table, int32_t first_line,
                                 int64_t instruction);

SourceLines source_lines(LineTable kind, std::span<const uint8_t> table, int32_t first_line,
                         int64_t instruction);

}  // namespace memscope::capture
