#include "core/text.h"

#include <array>
#include <cstdio>

namespace memscope {

std::string_view whole_characters(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(whole_characters(text, most)) + "…";
}

std::string address_text(uint64_t address) {
  std::array<char, 24> out{};
  std::snprintf(out.data(), out.size(), "0x%llx", static_cast<unsigned long long>(address));
  return out.data();
}

}  // namespace memscope
