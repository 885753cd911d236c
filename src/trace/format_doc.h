// The part of docs/trace-format.md that comes from the record table.
#pragma once

#include <string>

namespace memscope {

inline constexpr const char* kFormatDocBegin = "<!-- generated: msmemscope-synth --format-doc -->";
inline constexpr const char* kFormatDocEnd = "<!-- end of the generated part -->";

// `document` with what lies between the two markers replaced; "" where it lacks them.
std::string with_record_tables(const std::string& document);

// Markdown: a heading and a table of fields for every kind.
std::string record_tables();

}  // namespace memscope
