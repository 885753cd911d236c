#include "report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace memscope {
namespace {

// Three significant digits of a value below 1000.
std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::string format_bytes(double bytes) {
  if (!std::isfinite(bytes)) return "unknown";
  if (std::abs(bytes) < 0.005) return "0 B";  // what rounding leaves of a level slope
  if (bytes < 0) return "-" + format_bytes(-bytes);
  if (bytes < 999.5) {
    // Fractions of a byte are slopes; blocks are whole.
    return bytes == std::floor(bytes) || bytes >= 99.95 ? fmt::format("{:.0f} B", bytes)
                                                        : three_digits(bytes) + " B";
  }
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  double value = bytes / 1024;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value) + " " + kUnits[unit];
}

std::string format_bytes(int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

std::string format_bytes_change(double bytes) {
  return bytes >= 0.005 ? "+" + format_bytes(bytes) : format_bytes(bytes);
}

std::string format_count(int64_t count) {
  std::string digits = fmt::format("{}", count);
  const int first = count < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, ',');
  }
  return digits;
}

std::string format_rate(double value) {
  if (!std::isfinite(value)) return "unknown";
  const double whole = std::round(value);
  if (std::abs(value) >= 100 || std::abs(value - whole) < 0.005) {
    return format_count(static_cast<int64_t>(std::clamp(whole, -9e18, 9e18)));
  }
  std::string text = fmt::format("{:.2f}", value);
  if (text.back() == '0') text.pop_back();
  return text;
}

std::string format_duration(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (value < 999.5e3) return three_digits(value / 1e3) + " us";
  if (value < 999.5e6) return three_digits(value / 1e6) + " ms";
  const auto seconds = static_cast<uint64_t>(std::llround(value / 1e9));
  if (seconds < 60) return three_digits(value / 1e9) + " s";
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds % 86400 / 3600);
}

std::string format_plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string format_percent(double probability) {
  if (probability >= 1) return "100 %";
  return fmt::format("{:.0f} %", std::floor(std::clamp(probability, 0.0, 1.0) * 100 + 1e-9));
}

}  // namespace memscope
