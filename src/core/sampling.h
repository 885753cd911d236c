// What a sampled block stands for.
//
// Where memory is sampled by its bytes, a block of s bytes is recorded with the probability
//
//   p(s) = 1 - exp(-s / R)        R: bytes between two samples, on average
//
// independently of all others (capture/byte_sampler.h). Let I be 1 where a block is recorded, else
// 0, so that E[I] = p. What is recorded counts as w = s / p bytes and as 1 / p blocks: then
//
//   E[I w] = p s / p = s          the sum over any set of blocks is right on average, whatever
//                                 sizes are mixed in it (Horvitz and Thompson 1952)
//   Var[I w] = w^2 p (1 - p)      whose unbiased estimate from what was recorded is
//            = E[I w^2 (1 - p)] = E[I w (w - s)]
//
// so the square of a sum's standard error is the sum of w (w - s) over the recorded blocks in it.
// For s << R that is R^2 each (n samples are known to 1 / sqrt(n)); for s >> R it is 0: large
// blocks are all recorded. It is never more than R w.
//
// Done where events are read from a trace, and nowhere else: Event::size is w, so that everything
// that adds up bytes is right without knowing of it. What counts blocks, or needs to know how sure
// a sum is, looks at Event::sampled_size, which is s.
#pragma once

#include <cmath>
#include <cstdint>

namespace memscope {

struct ByteSampling {
  static constexpr uint64_t kMaxRate = uint64_t{1} << 30;

  uint64_t rate = 0;  // R; 0: every block is recorded

  bool on() const { return rate != 0; }
  // w, to the byte. 0 for 0.
  uint64_t stands_for(uint64_t size) const {
    if (rate == 0 || size == 0) return size;
    const double s = static_cast<double>(size);
    const double p = -std::expm1(-s / static_cast<double>(rate));
    // Where all are recorded it is the size itself, which a double may not hold.
    return p == 1 ? size : static_cast<uint64_t>(std::llround(s / p));
  }
};

// The following take a block's bytes as scaled and as recorded; recorded 0: it was not sampled.

// How many it stands for: 1 / p.
inline double sampled_count(uint64_t scaled, uint64_t recorded) {
  return recorded == 0 ? 1 : static_cast<double>(scaled) / static_cast<double>(recorded);
}

// Its part of the square of a sum's standard error, in KiB^2: whole numbers, so that adding and
// taking away leaves nothing behind.
inline uint64_t sampling_noise(uint64_t scaled, uint64_t recorded) {
  if (recorded == 0 || scaled <= recorded) return 0;
  constexpr double kUnit = 1024.0 * 1024.0;
  const double noise = static_cast<double>(scaled) * static_cast<double>(scaled - recorded) / kUnit;
  return static_cast<uint64_t>(std::llround(noise));
}
inline double standard_error(uint64_t noise) {
  return 1024 * std::sqrt(static_cast<double>(noise));
}
inline constexpr double kTwoSided95 = 1.96;  // standard errors, of sums of many

// R, from any block that is not much larger than it: as p = s / w. 0: cannot be told.
inline uint64_t sampling_rate(uint64_t scaled, uint64_t recorded) {
  if (recorded == 0 || scaled <= recorded) return 0;
  const double s = static_cast<double>(recorded);
  const double rate = -s / std::log1p(-s / static_cast<double>(scaled));
  return rate < static_cast<double>(ByteSampling::kMaxRate)
             ? static_cast<uint64_t>(std::llround(rate))
             : ByteSampling::kMaxRate;
}

}  // namespace memscope
