// Samples blocks by their bytes, without bias: a block of s bytes is taken with the probability
// p(s) = 1 - exp(-s / rate), independently of all others. HOT PATH: one subtraction a block.
//
// How: bytes are points of a line on which marks fall at random, `rate` bytes apart on average; a
// block on which a mark falls is taken. The way to the next mark is exponential, which has no
// memory: what was left of it does not count after a mark.
//
// What a taken block stands for, and how sure sums of them are: core/sampling.h.
#pragma once

#include <cstdint>

namespace memscope::capture {

class ByteSampler {
 public:
  // `rate` > 0, in bytes.
  bool take(uint64_t bytes, uint64_t rate) noexcept {
    if (__builtin_expect(state_ == 0, 0)) start(rate);
    left_ -= static_cast<double>(bytes);
    if (__builtin_expect(left_ > 0, 1)) return false;
    left_ = draw(rate);
    return true;
  }

  // As a given run of chance would have it, for tests.
  void seed(uint64_t seed, uint64_t rate) noexcept {
    state_ = seed == 0 ? 1 : seed;
    left_ = draw(rate);
  }

  // The next block is taken.
  void take_next() noexcept { left_ = 0; }

  // For a part of a block that was taken: whether the part is taken too, so that it is with p(part)
  // in all. part <= whole.
  bool keep(uint64_t part, uint64_t whole, uint64_t rate) noexcept {
    if (state_ == 0) start(rate);
    // A mark that fell on the whole block: did it fall on the part?
    constexpr int kTries = 100'000;
    for (int i = 0; i < kTries; ++i) {
      const double mark = draw(rate);
      if (mark < static_cast<double>(whole)) return mark < static_cast<double>(part);
    }
    return false;
  }

 private:
  void start(uint64_t rate) noexcept;
  double draw(uint64_t rate) noexcept;

  uint64_t state_ = 0;
  double left_ = 0;
};

// The natural logarithm, to 1e-6, for x > 0; the agent does without libm.
double fast_log(double x) noexcept;

}  // namespace memscope::capture
