// Text of a file or a trace, cut and written for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memscope {

// The beginning of UTF-8 text, `most` bytes or less, that cuts no character in two.
std::string_view whole_characters(std::string_view text, size_t most);
// The text, or where it is longer than `most` bytes its beginning with "…" behind.
std::string shortened(std::string_view text, size_t most);

std::string address_text(uint64_t address);  // "0x7f0000000200"

}  // namespace memscope
