#include "view/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace memscope::view {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 22> kUnits = {{{"b", 1},
                                          {"k", 1024.},
                                          {"kb", 1024.},
                                          {"kib", 1024.},
                                          {"m", 1048576.},
                                          {"mb", 1048576.},
                                          {"mib", 1048576.},
                                          {"g", 1073741824.},
                                          {"gb", 1073741824.},
                                          {"gib", 1073741824.},
                                          {"t", 1099511627776.},
                                          {"tb", 1099511627776.},
                                          {"tib", 1099511627776.},
                                          {"ns", 1},
                                          {"us", 1e3},
                                          {"\xc2\xb5s", 1e3},
                                          {"\xce\xbcs", 1e3},
                                          {"ms", 1e6},
                                          {"s", 1e9},
                                          {"min", 60e9},
                                          {"h", 3600e9},
                                          {"", 1}}};

std::string with_unit(double value, const char* unit) {
  std::array<char, 48> out{};
  const int digits = value < 10 && value != std::floor(value) ? 1 : 0;
  std::snprintf(out.data(), out.size(), "%.*f %s", digits, value, unit);
  return out.data();
}

}  // namespace

std::string cut(std::string_view text, size_t most) {
  return shortened(text, most);
}

std::string bytes_text(uint64_t bytes) {
  constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kNames.size(); ++unit) value /= 1024;
  return with_unit(value, kNames[unit]);
}

std::string duration_text(uint64_t ns) {
  constexpr std::array<const char*, 4> kNames = {"ns", "µs", "ms", "s"};
  double value = static_cast<double>(ns);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kNames.size(); ++unit) value /= 1000;
  return with_unit(value, kNames[unit]);
}

std::optional<int64_t> number_from_text(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return static_cast<int64_t>(value);
  }
  int64_t whole = 0;
  if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
      error == std::errc() && end == text.data() + text.size()) {
    return whole;  // exactly, where a double would round
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string unit;
  for (const char* at = end; at != text.data() + text.size(); ++at) {
    if (*at != ' ') unit += *at >= 'A' && *at <= 'Z' ? static_cast<char>(*at - 'A' + 'a') : *at;
  }
  for (const Unit& known : kUnits) {
    if (known.name != unit) continue;
    const double product = value * known.factor;
    if (!(std::abs(product) < 9e18)) return std::nullopt;
    return static_cast<int64_t>(std::llround(product));
  }
  return std::nullopt;
}

}  // namespace memscope::view
