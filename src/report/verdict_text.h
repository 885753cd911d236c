// One verdict as lines for a terminal; part of terminal.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/diagnosis.h"
#include "report/terminal.h"

namespace memscope {

// Headline, where it is allocated, where it is kept, how much, what to do. Ends with a newline.
std::string verdict_text(const Verdict& verdict, const Diagnosis& diagnosis,
                         const TerminalStyle& style);

// "+3.20 KiB per step  train.py:88  x = f(y)  30 %", at most `width` columns.
std::string one_line(const Verdict& verdict, const TerminalStyle& style, size_t width);

// A number in the verdict's evidence, whichever type it has there.
std::optional<double> evidence_number(const Verdict& verdict, std::string_view key);

}  // namespace memscope
