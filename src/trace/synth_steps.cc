// What a synthetic process does in a step.
#include <algorithm>

#include "trace/synth_process.h"

namespace memscope {
namespace {

enum Phase : uint64_t { kOther, kForward, kBackward, kOptimizer };

}  // namespace

void SynthProcess::make_parameters() {
  for (uint32_t d = 0; d < devices_.size(); ++d) {
    for (uint32_t i = 0; i < options_.layers; ++i) {
      devices_[d].parameters.push_back(allocate(d, options_.layer_bytes, sites_.parameter));
      own(devices_[d].parameters.back(), "PTA@model@weight");
    }
  }
}

void SynthProcess::forward(uint32_t step) {
  if (options_.phases) {
    lanes_[0]->record(tick(), PhaseRecord{.phase = kForward, .module = "model"});
  }
  for (uint32_t d = 0; d < devices_.size(); ++d) {
    for (uint32_t i = 0; i < options_.layers; ++i) {
      // Batches differ a little, so that sizes do.
      const uint64_t size = options_.layer_bytes * (8 + (step + i) % 3) / 8;
      devices_[d].activations.push_back(allocate(d, size, sites_.activation));
    }
  }
}

void SynthProcess::backward() {
  if (options_.phases) lanes_[0]->record(tick(), PhaseRecord{.phase = kBackward});
  for (uint32_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    while (!device.activations.empty()) {
      device.gradients.push_back(allocate(d, options_.layer_bytes, sites_.gradient));
      release(device.activations.back());
      device.activations.pop_back();
    }
  }
}

void SynthProcess::optimizer(uint32_t step) {
  if (options_.phases) lanes_[0]->record(tick(), PhaseRecord{.phase = kOptimizer});
  for (uint32_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    for (uint32_t i = 0; step == 1 && i < 2 * options_.layers; ++i) {
      device.states.push_back(allocate(d, options_.layer_bytes, sites_.state));
      own(device.states.back(), "PTA@model@optimizer_state");
    }
    for (const Block& gradient : device.gradients) release(gradient);
    device.gradients.clear();
  }
}

void SynthProcess::leak(uint32_t step) {
  for (size_t i = 0; i < answer_.leaks.size(); ++i) {
    SynthLeakAnswer& leak = answer_.leaks[i];
    if (step < leak.leak.first_step) continue;
    const auto found =
        std::find(options_.devices.begin(), options_.devices.end(), leak.leak.device);
    const auto device = static_cast<uint32_t>(
        found == options_.devices.end() ? 0 : found - options_.devices.begin());
    const uint32_t blocks = std::max(leak.leak.blocks_per_step, 1u);
    for (uint32_t b = 0; b < blocks; ++b) {
      // The first block takes what does not divide.
      const uint64_t size =
          leak.leak.bytes_per_step / blocks + (b == 0 ? leak.leak.bytes_per_step % blocks : 0);
      leaked_.push_back(allocate(device, size, leak_sites_[i]));
      leak.bytes_total += size;
      ++leak.blocks_total;
      if (leak.leak.holder) hold(leak, leaked_.back());
    }
  }
}

void SynthProcess::look_alikes(uint32_t step) {
  if (options_.cache && step <= options_.cache->until_step) {
    cached_.push_back(allocate(0, options_.cache->bytes_per_step, sites_.cache));
  }
  if (options_.sawtooth) {
    if (step % std::max(options_.sawtooth->period, 1u) == 0) {
      for (const Block& block : sawtooth_) release(block);
      sawtooth_.clear();
    }
    sawtooth_.push_back(allocate(0, options_.sawtooth->bytes_per_step, sites_.sawtooth));
  }
  if (options_.jump && step == options_.jump->at_step) {
    level_.push_back(allocate(0, options_.jump->bytes, sites_.jump));
  }
}

void SynthProcess::scratch(uint64_t pairs) {
  const auto count = static_cast<uint32_t>(devices_.size());
  for (uint64_t i = 0; i < pairs; ++i) {
    const uint32_t d = count == 1 ? 0 : alternate_++ % count;
    std::deque<Block>& alive = devices_[d].scratch;
    if (options_.scratch_alive != 0) {
      if (alive.size() >= options_.scratch_alive) free_any_scratch(alive);
    } else if (alive.size() == kScratchAlive) {
      release(alive.front());
      alive.pop_front();
    }
    const uint64_t random = random_();
    const uint64_t size = uint64_t{512} << (random % 8);
    const size_t site = sites_.scratch + (random >> 8) % std::max(options_.scratch_sites, 1u);
    alive.push_back(allocate(d, size, site));
    for (uint32_t k = 0; k < options_.accesses; ++k) {
      lanes_[0]->record(tick(), AccessRecord{.addr = alive.back().addr,
                                             .size = size,
                                             .mode = k == 0 ? 2u : 1u,
                                             .op = k == 0 ? "aten::empty_like" : "aten::mm"});
    }
  }
  if (options_.scratch_alive != 0) return;
  for (Device& device : devices_) {
    for (const Block& block : device.scratch) release(block);
    device.scratch.clear();
  }
}

// Most temporaries die young, some in their middle age, and a few are evicted old. Frees as many
// more now and then, so that the level breathes.
void SynthProcess::free_any_scratch(std::deque<Block>& alive) {
  size_t count = random_() % 64 == 0 ? 1 + random_() % (alive.size() / 4 + 1) : 1;
  for (; count != 0 && !alive.empty(); --count) {
    const uint64_t random = random_();
    const uint64_t kind = random % 10;
    size_t at = alive.size() - 1;
    if (kind >= 9) {
      at = 0;
    } else if (kind >= 6) {
      at = (random >> 8) % alive.size();
    } else {
      at -= std::min<size_t>(at, (random >> 8) % 8);
    }
    release(alive[at]);
    std::swap(alive[at], at == 0 ? alive.front() : alive.back());
    if (at == 0) {
      alive.pop_front();
    } else {
      alive.pop_back();
    }
  }
}

void SynthProcess::finish_step(uint32_t step) {
  LaneBuilder& lane = *lanes_[0];
  for (const Device& device : devices_) {
    if (!device.memory.is_pool()) continue;
    const SynthMemory& memory = device.memory;
    lane.record(tick(), PoolSnapshotRecord{.where = memory.where().packed(),
                                           .allocated = memory.allocated(),
                                           .reserved = memory.reserved(),
                                           .active = memory.allocated(),
                                           .requested = memory.allocated()});
  }
  if (options_.counters) {
    uint64_t rss = 100u << 20;
    for (const Device& device : devices_) {
      if (!device.memory.is_pool()) rss += device.memory.allocated();
    }
    lane.record(tick(), CounterRecord{.name = "rss", .value = static_cast<int64_t>(rss)});
  }
  ticks_ = std::max(ticks_, kStartTicks + step * options_.step_ns);
  if (options_.step_source == "none") return;
  const bool api = options_.step_source == "api";
  const auto source = api ? StepSource::kApi : StepSource::kOptimizer;
  lane.record(tick(), StepRecord{.source = static_cast<uint64_t>(source),
                                 .index = step,
                                 .optimizer = api ? 0u : 1u,
                                 .name = api ? "" : "AdamW"});
}

void SynthProcess::play_step(uint32_t step) {
  if (options_.marks) {
    lanes_[0]->record(tick(), MarkRecord{.action = 1, .range = step, .text = "step start"});
  }
  if (step == 1) make_parameters();
  forward(step);
  leak(step);
  look_alikes(step);
  scratch(pairs_per_step_);
  backward();
  optimizer(step);
  if (options_.phases) lanes_[0]->record(tick(), PhaseRecord{.phase = kOther});
  if (options_.marks) lanes_[0]->record(tick(), MarkRecord{.action = 2, .range = step});
  finish_step(step);
  ++answer_.steps;
}

}  // namespace memscope
