// One process of a synthetic run: plays the program (synth_steps.cc) and writes its trace.
#pragma once

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "trace/synth.h"
#include "trace/synth_memory.h"
#include "trace/synth_program.h"
#include "trace/trace_builder.h"

namespace memscope {

class SynthProcess {
 public:
  SynthProcess(const SynthOptions& options, const std::filesystem::path& run, uint32_t index);
  Result<SynthProcessAnswer> play();

 private:
  static constexpr uint64_t kStartTicks = 1'000'000'000;  // the process is a second old
  static constexpr uint64_t kScratchAlive = 16;           // scratch blocks at a time

  struct Block {
    uint64_t addr = 0, size = 0, birth = 0;
    uint32_t device = 0;
    bool dropped = false;  // its events found no slot
  };
  struct Device {
    SynthMemory memory;
    uint64_t start = 0;
    std::vector<Block> parameters, states, activations, gradients;
    std::deque<Block> scratch;
  };

  void begin();
  void make_parameters();
  void play_step(uint32_t step);
  void forward(uint32_t step);
  void backward();
  void optimizer(uint32_t step);
  void leak(uint32_t step);
  void look_alikes(uint32_t step);
  void scratch(uint64_t pairs);
  void free_any_scratch(std::deque<Block>& alive);
  void pause();
  void open_window();
  void finish_step(uint32_t step);

  Block allocate(uint32_t device, uint64_t size, size_t site, bool recorded = true);
  void release(const Block& block, bool recorded = true);
  void keep(std::vector<Block>& where, Block block);
  LaneBuilder& any_lane();
  uint64_t tick();
  uint64_t stack_of(LaneBuilder& lane, size_t site);
  void own(const Block& block, std::string_view owner);
  void hold(const SynthLeakAnswer& leak, const Block& block);
  std::vector<const Block*> live() const;
  void answer_layers();
  void write_meta() const;

  const SynthOptions& options_;
  SynthProcessAnswer answer_;
  SynthProgram program_;
  std::unique_ptr<TraceBuilder> trace_;
  std::vector<LaneBuilder*> lanes_;
  std::vector<std::vector<uint32_t>> stacks_;  // by lane, site; 0 = not yet defined
  std::vector<Device> devices_;
  std::vector<Block> leaked_, cached_, sawtooth_, level_, preexisting_, unseen_;
  std::mt19937_64 random_;
  uint64_t ticks_ = 0;
  uint64_t pairs_per_step_ = 0;
  struct Sites {
    size_t parameter, activation, gradient, state, cache, sawtooth, jump, scratch;
  } sites_{};
  std::vector<size_t> leak_sites_;
  uint32_t alternate_ = 0;
};

}  // namespace memscope
