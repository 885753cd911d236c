#include "trace/synth_process.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace memscope {
namespace {

constexpr uint64_t kFirstAddress = 0x7f00'0000'0000;
constexpr uint64_t kAddressesPerDevice = 0x100'0000'0000;

Where where_of(const std::string& name) {
  const Device device = device_from_name(name).value_or(Device{});
  return {device.type == Device::kCpu ? Layer::kTensor : Layer::kPool, device};
}

}  // namespace

SynthProcess::SynthProcess(const SynthOptions& options, const std::filesystem::path& run,
                           uint32_t index)
    : options_(options), random_(options.seed * 1000 + index) {
  answer_.pid = 1000 + index;
  answer_.rank = options.ranks || options.processes > 1 ? int64_t{index} : -1;
  const std::string rank = answer_.rank < 0 ? "x" : std::to_string(answer_.rank);
  answer_.directory = run / ("synthetic-" + rank + "-" + std::to_string(answer_.pid));
  trace_ = std::make_unique<TraceBuilder>(
      answer_.directory, TraceOptions{.pid = answer_.pid,
                                      .rank = answer_.rank,
                                      .argv0 = kSynthFile,
                                      .anchor = {kStartTicks, kStartTicks, kEpochNs}});
  ticks_ = kStartTicks;
  program_.add_function("main", {"train()"});
  sites_.parameter = program_.add_function("build_model", {"weight = torch.empty(n)"});
  sites_.activation = program_.add_function("forward", {"hidden = layer(hidden)"});
  sites_.gradient = program_.add_function("train", {"loss.backward()", "optimizer.step()"});
  sites_.state = sites_.gradient + 1;
  sites_.cache = program_.add_function("lookup", {"table[key] = torch.empty(n)"});
  sites_.sawtooth = program_.add_function("collect", {"buffer.append(torch.empty(n))"});
  sites_.jump = program_.add_function("resize", {"workspace = torch.empty(n)"});
  for (const SynthLeak& leak : options.leaks) {
    leak_sites_.push_back(program_.add_function(
        leak.name, {"leak_tensor = torch.empty(n)", "leak_store.append(leak_tensor)"}));
  }
  std::vector<std::string> scratch(std::max(options.scratch_sites, 1u), "t = torch.empty(n)");
  sites_.scratch = program_.add_function("operators", scratch);
  for (size_t i = 0; i < options.devices.size(); ++i) {
    devices_.push_back(
        {SynthMemory(where_of(options.devices[i]), kFirstAddress + i * kAddressesPerDevice),
         0,
         {},
         {},
         {},
         {},
         {}});
  }
  // What a step needs without scratch blocks: activations and gradients, both made and freed.
  const uint64_t own = 4 * uint64_t{options.layers} * devices_.size();
  const uint64_t a_step = options.steps == 0 ? 0 : options.events / options.steps;
  pairs_per_step_ = a_step > own ? (a_step - own) / 2 : kScratchAlive;
}

uint64_t SynthProcess::tick() {
  ticks_ += 50 + random_() % 512;
  return ticks_;
}

LaneBuilder& SynthProcess::any_lane() {
  return *lanes_[lanes_.size() == 1 ? 0 : random_() % lanes_.size()];
}

uint64_t SynthProcess::stack_of(LaneBuilder& lane, size_t site) {
  auto& known = stacks_[lane.number() - 1];
  if (known[site] == 0) known[site] = program_.stack(lane, site, options_.depth);
  return known[site];
}

SynthProcess::Block SynthProcess::allocate(uint32_t device, uint64_t size, size_t site,
                                           bool recorded) {
  SynthMemory& memory = devices_[device].memory;
  SynthMemory::Segment grown;
  Block block{memory.allocate(size, &grown), size, tick(), device, !recorded};
  LaneBuilder& lane = any_lane();
  if (grown.size != 0) {
    Where driver = memory.where();
    driver.layer = Layer::kDriver;
    lane.record(block.birth, SegmentRecord{.addr = grown.addr,
                                           .sized = pack_sized(grown.size, driver.packed())});
  }
  if (!recorded) return block;
  const auto stack = static_cast<uint32_t>(stack_of(lane, site));
  if (memory.is_pool()) {
    lane.pool_alloc(block.birth, block.addr, size, memory.where(), stack, memory.allocated(),
                    memory.reserved());
  } else {
    lane.alloc(block.birth, block.addr, size, memory.where(), stack);
  }
  ++answer_.allocs;
  return block;
}

void SynthProcess::release(const Block& block, bool recorded) {
  SynthMemory& memory = devices_[block.device].memory;
  memory.release(block.addr, block.size);
  const uint64_t now = tick();
  if (!recorded) return;
  LaneBuilder& lane = any_lane();
  if (memory.is_pool()) {
    lane.pool_free(now, block.addr, memory.where(), memory.allocated(), memory.reserved());
  } else {
    lane.free(now, block.addr, memory.where());
  }
  ++answer_.frees;
}

void SynthProcess::own(const Block& block, std::string_view owner) {
  if (!options_.owners) return;
  lanes_[0]->record(ticks_, OwnerRecord{.addr = block.addr, .birth = block.birth, .owner = owner});
}

void SynthProcess::hold(const SynthLeakAnswer& leak, const Block& block) {
  trace_->agent().record(
      ticks_, HolderRecord{.addr = block.addr,
                           .birth = block.birth,
                           .root = "module",
                           .path = R"([{"kind":"global","name":"leak_store","type":"list",)"
                                   R"("len":null},{"kind":"item","name":"0","type":"Tensor",)"
                                   R"("len":null}])",
                           .file = kSynthFile,
                           .line = leak.kept_line,
                           .end_line = leak.kept_line,
                           .function = leak.leak.name,
                           .text = "__main__.leak_store"});
}

std::vector<const SynthProcess::Block*> SynthProcess::live() const {
  std::vector<const Block*> blocks;
  const auto add = [&](const auto& from) {
    for (const Block& block : from) {
      if (!block.dropped) blocks.push_back(&block);
    }
  };
  for (const Device& device : devices_) {
    add(device.parameters), add(device.states), add(device.activations), add(device.gradients);
    add(device.scratch);
  }
  add(leaked_), add(cached_), add(sawtooth_), add(level_), add(preexisting_), add(unseen_);
  return blocks;
}

void SynthProcess::open_window() {
  LaneBuilder& agent = trace_->agent();
  const uint64_t now = tick();
  agent.record(now, window_record(WindowAction::kStart, now));
  for (const Block* block : live()) {
    const uint16_t where = devices_[block->device].memory.where().packed();
    agent.record(now, SeedRecord{.addr = block->addr,
                                 .sized = pack_sized(block->size, where),
                                 .birth = block->birth,
                                 .window_ticks = now});
    ++answer_.seeds;
    answer_.preexisting += block->birth == 0;
  }
}

void SynthProcess::begin() {
  LaneBuilder& agent = trace_->agent();
  agent.record(kStartTicks, ConfigRecord{.key = "device", .value = "auto"});
  agent.record(kStartTicks, SourceRecord{.path = kSynthFile, .text = program_.text()});
  for (uint32_t i = 0; i < std::max(options_.threads, 1u); ++i) {
    lanes_.push_back(&trace_->lane(i + 1, answer_.pid + i, i == 0 ? "python" : "worker"));
    stacks_.emplace_back(program_.site_count());
  }
  for (uint32_t i = 0; i < options_.preexisting; ++i) {
    SynthMemory::Segment grown;
    const uint32_t device = i % static_cast<uint32_t>(devices_.size());
    const uint64_t size = options_.layer_bytes;
    preexisting_.push_back({devices_[device].memory.allocate(size, &grown), size, 0, device});
  }
  open_window();
  for (Device& device : devices_) device.start = device.memory.allocated();
}

// stop(), a block that is made meanwhile, start().
void SynthProcess::pause() {
  const uint64_t now = tick();
  trace_->agent().record(now, window_record(WindowAction::kStop, now));
  unseen_.push_back(allocate(0, options_.layer_bytes, sites_.parameter, false));
  unseen_.back().dropped = false;
  tick();
  open_window();
}

void SynthProcess::answer_layers() {
  for (size_t d = 0; d < devices_.size(); ++d) {
    const SynthMemory& memory = devices_[d].memory;
    SynthLayerAnswer layer;
    layer.device = options_.devices[d];
    layer.layer = layer_name(memory.where().layer);
    layer.start = devices_[d].start;
    layer.peak = memory.peak();
    layer.end = memory.allocated();
    if (memory.is_pool()) {
      layer.reserved_peak = memory.reserved_peak();
      layer.reserved_end = memory.reserved();
    }
    for (const SynthLeakAnswer& leak : answer_.leaks) {
      const bool here = leak.leak.device == layer.device || (leak.leak.device.empty() && d == 0);
      if (here) layer.bytes_per_step += leak.leak.bytes_per_step;
    }
    answer_.layers.push_back(layer);
  }
}

void SynthProcess::write_meta() const {
  const nlohmann::json meta{
      {"schema", 1},
      {"agent", MEMSCOPE_VERSION},
      {"pid", answer_.pid},
      {"host", "synthetic"},
      {"rank", answer_.rank < 0 ? nlohmann::json() : nlohmann::json(answer_.rank)},
      {"start_ns", kEpochNs},
      {"slab", (answer_.directory / kSlabName).string()},
      {"command", kSynthFile}};
  std::ofstream(answer_.directory / kMetaName) << meta.dump() << "\n";
}

Result<SynthProcessAnswer> SynthProcess::play() {
  const auto index = static_cast<int>(answer_.pid - 1000);
  for (size_t i = 0; i < options_.leaks.size(); ++i) {
    SynthLeakAnswer leak;
    leak.leak = options_.leaks[i];
    if (leak.leak.process >= 0 && leak.leak.process != index) {
      leak.leak.first_step = options_.steps + 1;  // elsewhere
    }
    const SynthProgram::Site& made = program_.site(leak_sites_[i]);
    leak.file = kSynthFile;
    leak.line = made.line;
    leak.text = made.text;
    leak.kept_line = program_.site(leak_sites_[i] + 1).line;
    leak.kept_text = program_.site(leak_sites_[i] + 1).text;
    answer_.leaks.push_back(leak);
  }
  begin();
  for (uint32_t step = 1; step <= options_.steps; ++step) {
    play_step(step);
    if (step == options_.pause_after) pause();
  }
  if (options_.dropped != 0) {
    for (const Kind kind : {Kind::kAlloc, Kind::kFree}) {
      lanes_[0]->record(tick(), DropRecord{.kind = static_cast<uint64_t>(kind),
                                           .stack = stack_of(*lanes_[0], sites_.scratch),
                                           .count = options_.dropped,
                                           .bytes = 512 * uint64_t{options_.dropped}});
    }
    answer_.dropped = 2 * uint64_t{options_.dropped};
  }
  std::erase_if(answer_.leaks, [](const SynthLeakAnswer& leak) { return leak.blocks_total == 0; });
  answer_layers();
  answer_.live_blocks = live().size();
  const uint64_t now = tick();
  trace_->agent().record(now, AnchorRecord{now, now, kEpochNs + now - kStartTicks});
  if (options_.end == SynthEnd::kKilled) {
    answer_.ended = "killed";
  } else {
    const bool stop = options_.end == SynthEnd::kStop;
    answer_.ended = stop ? "stop" : "exit";
    trace_->agent().record(now,
                           window_record(stop ? WindowAction::kStop : WindowAction::kExit, now));
  }
  auto written = options_.end == SynthEnd::kKilled ? trace_->kill() : trace_->finish();
  if (!written) return written.error();
  write_meta();
  if (options_.end == SynthEnd::kKilled) {
    // Else a reader would take it for a run of another host that is still being written.
    const auto an_hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    for (const char* name : {kLogName, kSlabName}) {
      std::error_code ignored;
      std::filesystem::last_write_time(answer_.directory / name, an_hour_ago, ignored);
    }
  }
  return answer_;
}

}  // namespace memscope
