// Synthetic traces with known answers: a pretend training job, written as the agent would write it,
// and beside it `answers.json` with the truth. For tests and benchmarks of everything that reads
// traces. The same options give the same bytes.
//
// A process trains a model of a few layers on each of its devices. A step allocates activations in
// `forward`, frees them and allocates gradients in `backward`, and frees those in `optimizer`, so a
// program without the extras below is healthy and flat after its first step, in which it also
// allocates parameters and optimizer states. Scratch blocks come and go on all threads until the
// asked number of events is reached.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace memscope {

// Growth without end: blocks of one line that nobody frees.
struct SynthLeak {
  std::string name = "create_memory_leak";  // the function that allocates
  uint64_t bytes_per_step = 1 << 20;
  uint32_t blocks_per_step = 1;
  uint32_t first_step = 1;
  std::string device;   // "": the first
  int process = -1;     // which process, -1 all
  bool holder = false;  // write Holder records, too
};

// Healthy look-alikes.
struct SynthCache {  // fills, and stops
  uint64_t bytes_per_step = 1 << 20;
  uint32_t until_step = 10;
};
struct SynthSawtooth {  // grows, and is emptied every `period` steps
  uint64_t bytes_per_step = 1 << 20;
  uint32_t period = 20;
};
struct SynthJump {  // a level that changes once
  uint64_t bytes = 16 << 20;
  uint32_t at_step = 50;
};

enum class SynthEnd { kStop, kExit, kKilled };

struct SynthOptions {
  std::filesystem::path output = "memscopeDumpResults";
  std::string run_id;  // "" = synthetic-<seed>
  uint64_t seed = 1;
  uint32_t steps = 100;
  uint64_t events = 0;  // allocs and frees of a process, at least what the program needs
  uint32_t processes = 1;
  bool ranks = false;  // processes are ranks of one job; implied by more than one
  uint32_t threads = 1;
  uint32_t depth = 12;          // frames of a stack
  uint32_t scratch_sites = 64;  // lines that allocate scratch blocks
  // 0: a few scratch blocks at a time, oldest freed first, none beyond a step. N: up to N at a time
  // with lifetimes of all lengths, as temporaries, caches and pools of requests have them.
  uint32_t scratch_alive = 0;
  uint32_t accesses = 0;  // of each scratch block, right after its alloc: the first writes
  uint32_t layers = 8;    // of the model
  uint64_t layer_bytes = 1 << 20;
  std::vector<std::string> devices{"cpu"};  // pool layer with totals and segments for all but cpu
  uint64_t step_ns = 100'000'000;           // a step takes this long, or as long as its events need
  std::string step_source = "api";          // api, optimizer, none

  std::vector<SynthLeak> leaks;
  std::optional<SynthCache> cache;
  std::optional<SynthSawtooth> sawtooth;
  std::optional<SynthJump> jump;

  bool phases = true, owners = false, marks = false, counters = false;
  uint32_t preexisting = 0;  // blocks that were there before the hooks came
  uint32_t pause_after = 0;  // stop and start again after this step, with blocks made in between
  uint32_t dropped = 0;      // pairs of events that found no slot
  SynthEnd end = SynthEnd::kStop;
};

struct SynthLeakAnswer {
  SynthLeak leak;
  std::string file, text, kept_text;
  uint32_t line = 0, kept_line = 0;
  uint64_t bytes_total = 0, blocks_total = 0;
};

struct SynthLayerAnswer {
  std::string device, layer;
  uint64_t start = 0, peak = 0, end = 0;
  std::optional<uint64_t> reserved_peak, reserved_end;
  uint64_t bytes_per_step = 0;  // of the leaks
};

struct SynthProcessAnswer {
  std::filesystem::path directory;
  uint64_t pid = 0;
  int64_t rank = -1;
  std::string ended;
  uint64_t steps = 0, allocs = 0, frees = 0, seeds = 0, preexisting = 0, dropped = 0;
  uint64_t live_blocks = 0;  // at the end
  std::vector<SynthLeakAnswer> leaks;
  std::vector<SynthLayerAnswer> layers;
};

struct SynthAnswers {
  std::filesystem::path run;
  std::vector<SynthProcessAnswer> processes;
};

// Writes <output>/run-<id>/<host>-<rank|x>-<pid>/ for each process, and <run>/answers.json.
Result<SynthAnswers> synthesize(const SynthOptions& options);

// answers.json's text.
std::string answers_json(const SynthAnswers& answers, const SynthOptions& options);

}  // namespace memscope
