#include "capture/byte_sampler.h"

#include <bit>

#include "capture/clock.h"

namespace memscope::capture {

double fast_log(double x) noexcept {
  constexpr double kLn2 = 0.693147180559945309;
  constexpr int kFractionBits = 52, kBias = 1023;
  const auto bits = std::bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(bits >> kFractionBits & 0x7FF) - kBias;
  constexpr uint64_t kFraction = (uint64_t{1} << kFractionBits) - 1;
  const auto mantissa =
      std::bit_cast<double>((bits & kFraction) | uint64_t{kBias} << kFractionBits);
  // ln m = 2 artanh((m - 1) / (m + 1)), m in [1, 2): the series' rest is below z^13 / 6.5.
  const double z = (mantissa - 1) / (mantissa + 1);
  const double z2 = z * z;
  const double series =
      z * (1 + z2 * (1.0 / 3 + z2 * (1.0 / 5 + z2 * (1.0 / 7 + z2 * (1.0 / 9 + z2 / 11)))));
  return 2 * series + exponent * kLn2;
}

void ByteSampler::start(uint64_t rate) noexcept {
  // The place in memory tells lanes apart that start in the same tick.
  state_ = (ticks_now() ^ reinterpret_cast<uintptr_t>(this)) * 0x9E3779B97F4A7C15u | 1;
  left_ = draw(rate);
}

double ByteSampler::draw(uint64_t rate) noexcept {
  // splitmix64 (Steele, Lea, Flood 2014): every seed is a good one.
  state_ += 0x9E3779B97F4A7C15u;
  if (state_ == 0) state_ = 1;
  uint64_t bits = state_;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  bits ^= bits >> 31;
  const double uniform = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;  // 0 < u < 1
  return -fast_log(uniform) * static_cast<double>(rate);
}

}  // namespace memscope::capture
