// The groups of blocks of one input that grow: each a site in one place, with its numbers.
//
// Stacks are judged one by one, so that one that leaks is not lost in its line's other churn; what
// is left of the line is judged as a whole, so that a leak over many stacks is not lost either.
//
// Companions are lines too small to be judged that gain in the steps in which a candidate gains:
// the scalar loss whose graph keeps the large blocks, the second site of one list. They never make
// a verdict; they tell whose it is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/growth.h"
#include "analysis/holders.h"
#include "analysis/site.h"
#include "analysis/storing.h"
#include "replay/replay.h"

namespace memscope {

struct LeakInput {
  const ReplayResult* replay = nullptr;
  Sites* sites = nullptr;
  size_t index = 0;     // in Diagnosis::inputs
  uint32_t warmup = 0;  // the last step of it
  bool asked = false;   // its objects were asked who holds what: it was not killed
};

struct Candidate {
  size_t input = 0;  // index into the LeakInputs
  Where where;
  uint32_t site = 0;  // of the input's Sites; 0 = a stack without Python
  std::string site_key, function;
  StackId stack;  // of its largest group
  std::vector<uint32_t> groups;
  Growth growth;
  double confidence = 0;
  std::vector<double> curve;  // live bytes at step ends, at most 32 points
  std::vector<bool> gains;    // at which points after warm-up it rose
  // Alive at the end, born after warm-up, fate known.
  uint64_t bytes = 0, blocks = 0;
  uint64_t unknown_bytes = 0;  // as above, fate unknown: not accused
  uint32_t first_step = 0, last_step = 0;
  // Of `bytes`, and of what live gained after warm-up: the square of the standard error, where the
  // place is sampled (core/sampling.h).
  double noise = 0, gain_noise = 0;
  bool companion = false;
  bool released = false;       // most of it was freed after the last step; numbers are of that step
  std::vector<uint32_t> live;  // indices into ReplayResult::live, by birth
  HolderSums holders;
  std::optional<StoredAt> stored;  // what the source says; where `holders` says nothing
  uint32_t owner = 0;              // of most of its bytes; index into SideRecords::owners
};

// What the judgement of one input rests on.
struct JudgedSteps {
  std::vector<double> x;  // step number, or seconds with source `time`, of each point
  size_t begin = 0;       // the first point after warm-up (and after the last gap)
  uint32_t steps = 0;     // after warm-up
  bool enough() const { return steps >= kMinSteps && x.size() >= begin + kMinSteps; }
};
JudgedSteps judged_steps(const ReplayResult& replay, uint32_t warmup);

// Total live bytes at the points, over a pool or a curve.
std::vector<double> dense(const std::vector<CurvePoint>& curve, size_t points);

// The least total a verdict needs.
double least_total(const Pool& pool);
// How much must grow in a place to be seen: of a sampled one more.
double detection_limit(const ReplayResult& replay, const Pool& pool, const JudgedSteps& steps);

std::vector<Candidate> find_candidates(std::span<const LeakInput> inputs, size_t input);

// They gain in the same steps, but for a tenth.
bool gain_together(const Candidate& a, const Candidate& b);

}  // namespace memscope
