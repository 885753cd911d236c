// A comparison for people: one sentence that says what matters, then the tables, in 80 columns.
//
//   NEW holds 1.17 GiB more than BASE; 93 % of it is allocated at train.py:88.
//
//   by line                                  BASE        NEW      change   blocks
//     train.py:88  x = torch.randn(...)         -   1.09 GiB   +1.09 GiB     +290
//     and 12 more                        1.00 GiB   1.08 GiB   +81.0 MiB      +20
//     total                              1.00 GiB   2.17 GiB   +1.17 GiB     +310
//
// Text of the traced program is made harmless; colours only where the style has them.
#pragma once

#include <string>

#include "analysis/compare.h"
#include "report/terminal.h"

namespace memscope {

std::string comparison_text(const Comparison& comparison, const TerminalStyle& style);

// The sentence alone, without a newline.
std::string comparison_sentence(const Comparison& comparison, const TerminalStyle& style);

}  // namespace memscope
