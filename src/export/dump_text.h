// Text as the csv and db columns take it.
//
//  * What goes into a file is valid UTF-8 without NUL: csv readers, SQLite's text functions and
//    JSON parsers all choke on something else. Bad bytes become U+FFFD.
//  * A csv field is quoted as RFC 4180 says; a field that needs no quotes gets none.
//  * An Attr is `{key:value,key:value}` in a csv, as msMemScope writes it, and JSON with string
//    values and no blanks in a db. A value that would break `{key:value}` is a JSON string there,
//    too: {size:512,owner:"a,b"}.
#pragma once

#include <string>
#include <string_view>

namespace memscope {

std::string clean_text(std::string_view text);
// The same on one line: line breaks become blanks.
std::string clean_line(std::string_view text);

// `text` as a JSON string with its quotes. It must be clean.
std::string json_string(std::string_view text);
bool needs_json_escape(std::string_view text);

// Whether `value` must be a JSON string within `{key:value}`.
bool breaks_attr(std::string_view value);

// Whether a csv field must be quoted.
bool needs_csv_quotes(std::string_view field);
// Writes `text` with every quote doubled; `out` has room for twice its size. Returns the end.
char* put_doubling_quotes(char* out, std::string_view text);

// "0x" and 16 lower-case digits, as msMemScope prints addresses.
inline constexpr size_t kAddressDigits = 18;
char* put_address(char* out, uint64_t address);
// Decimal; `out` has room for 20 digits.
char* put_number(char* out, uint64_t number);

}  // namespace memscope
