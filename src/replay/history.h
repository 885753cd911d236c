// What replay keeps of the past: curves over the steps, each of at most kMaxBuckets points however
// long the run, so that memory does not grow with its length.
//
// A bucket is `width` steps in a row, a power of two, so that where a run grows longer two buckets
// become one and no other boundary comes up (a folded past has no others, fold.h); a curve's point
// is the value at the end of the bucket's last step. With up to 256 steps a bucket is a step. Where
// only the steps from A on are asked for, all before A are one bucket, so that A and what follows
// are seen as finely as can be:
//
//   steps 21 to 60 of many    | 1 ... 20 | 21 | 22 | ... | 60 |
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/where.h"

namespace memscope {

struct Buckets {
  static constexpr uint32_t kMaxBuckets = 256;

  uint32_t steps = 0;   // in all
  uint32_t width = 1;   // steps a bucket
  uint32_t before = 0;  // steps in the first bucket, where it stands for what is not asked for

  Buckets() = default;
  explicit Buckets(uint32_t step_count, uint32_t first_step = 1)
      : steps(step_count), before(first_step > 1 ? std::min(first_step - 1, step_count) : 0) {
    const uint32_t most = kMaxBuckets - lead();
    width = std::bit_ceil(std::max(1u, (steps - before + most - 1) / most));
  }

  uint32_t lead() const { return before == 0 ? 0 : 1; }
  uint32_t count() const { return lead() + (steps - before + width - 1) / width; }
  // Of step k, from 1.
  uint32_t of_step(uint32_t step) const {
    return step <= before ? 0 : lead() + (step - before - 1) / width;
  }
  uint32_t first_step(uint32_t bucket) const {
    return bucket < lead() ? 1 : before + (bucket - lead()) * width + 1;
  }
  uint32_t last_step(uint32_t bucket) const {
    return bucket < lead() ? before : std::min(steps, before + (bucket - lead() + 1) * width);
  }
};

// A point where the curve changes; it holds until the next one. 0 before the first.
struct CurvePoint {
  uint32_t bucket = 0;
  uint32_t blocks = 0;  // as recorded
  uint64_t bytes = 0;
  uint64_t noise = 0;  // of sampled bytes the square of their standard error, KiB^2 (sampling.h)
};

// All blocks of one stack in one place.
struct Group {
  StackId stack;
  Where where;
  bool seeded = false;       // blocks first seen at a window's start: no stack, never accused
  uint32_t pool = 0;         // index into the pools
  uint32_t next = 0;         // another group of the same stack, 0 = none
  uint32_t touched = ~0u;    // the last step in which it changed
  uint32_t live_blocks = 0;  // as recorded
  uint64_t live_bytes = 0, live_noise = 0;
  uint64_t allocs = 0;
  double stands_for = 0;         // blocks that sampled allocs stand for
  std::vector<CurvePoint> live;  // at step ends
  // By bucket of birth, ascending: what is alive at the last step's end (not cumulative).
  std::vector<CurvePoint> survivors;
  CurvePoint survivors_of_start;  // of them, those born in step 0
};

struct PoolLevel {
  uint64_t start = 0, peak = 0, end = 0;
};

// Least and most allocated inside the steps of one bucket, and allocated at its end.
struct PoolBucket {
  uint64_t min = 0, max = 0, end = 0, reserved_end = 0;
};

// The step > 1 with an extreme ratio of its least to its most allocated bytes.
struct PoolGap {
  uint32_t step = 0;  // 0 = no such step
  double ratio = 0;
  uint64_t min_allocated = 0;
};

// One place: a layer on a device.
struct Pool {
  Where where;
  bool has_totals = false;  // the pool itself told its totals
  PoolLevel allocated, reserved;
  std::vector<PoolBucket> buckets;  // one for each bucket that is over
  PoolGap min_gap, max_gap;
  // Of the moment.
  uint64_t now = 0, reserved_now = 0;
  uint64_t step_min = ~uint64_t{0}, step_max = 0;
  uint64_t live_bytes = 0, live_blocks = 0, live_noise = 0;
  uint64_t peak_noise = 0;  // of allocated.peak
};

}  // namespace memscope
