// The part of docs/trace-format.md that comes from the record table.
#pragma once

#include <string>

namespace memscope {

inline constexpr const char* kFormatDocBegin = "<!-- generated: msmemscope-synth --format-doc -->";
inline constexpr const char* kFormatDocEnd = "<!-- end of the generated part -->";

// Markdown: a heading and a table of fields for every kind.
std::string record_tables();

}  // namespace memscope
