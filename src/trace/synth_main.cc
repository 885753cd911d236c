// msmemscope-synth: writes synthetic traces with known answers, see synth.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "trace/format_doc.h"
#include "trace/synth.h"

namespace {

using memscope::SynthEnd;
using memscope::SynthLeak;

// NAME:BYTES[:BLOCKS[:FIRST_STEP[:DEVICE]]]; the device may have a colon itself.
SynthLeak parse_leak(const std::string& text) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at; parts.size() < 4 && (at = text.find(':', from)) != std::string::npos;
       from = at + 1) {
    parts.push_back(text.substr(from, at - from));
  }
  parts.push_back(text.substr(from));
  const auto number = [&](size_t i, uint64_t otherwise) {
    return i < parts.size() && !parts[i].empty() ? std::stoull(parts[i]) : otherwise;
  };
  SynthLeak leak;
  if (!parts[0].empty()) leak.name = parts[0];
  leak.bytes_per_step = number(1, leak.bytes_per_step);
  leak.blocks_per_step = static_cast<uint32_t>(number(2, leak.blocks_per_step));
  leak.first_step = static_cast<uint32_t>(number(3, leak.first_step));
  if (parts.size() > 4) leak.device = parts[4];
  return leak;
}

int update_format_doc(const std::string& path) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string updated = memscope::with_record_tables(text);
  if (updated.empty() || !(std::ofstream(path) << updated)) {
    std::fprintf(stderr, "msmemscope-synth: %s: not a writable file with the two markers\n",
                 path.c_str());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  memscope::SynthOptions options;
  CLI::App app{
      "Writes synthetic traces with known answers: a pretend training job with the leaks\n"
      "and look-alikes asked for, as a run directory, and answers.json with the truth."};
  std::vector<std::string> leaks;
  uint64_t cache = 0, sawtooth = 0, jump = 0;
  uint32_t cache_until = 10, sawtooth_period = 20, jump_at = 50;
  bool holders = false, no_phases = false;
  std::string format_doc;
  app.add_option("-o,--output", options.output, "directory of runs")->capture_default_str();
  app.add_option("--run-id", options.run_id, "name of the run [synthetic-SEED]");
  app.add_option("--seed", options.seed, "the same seed gives the same run")->capture_default_str();
  app.add_option("--steps", options.steps, "training steps")->capture_default_str();
  app.add_option("--events", options.events,
                 "allocs and frees of a process, about; the rest of them is scratch");
  app.add_option("--processes", options.processes, "processes; more than one are ranks")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads that allocate and free")
      ->capture_default_str();
  app.add_option("--depth", options.depth, "frames of a stack")->capture_default_str();
  app.add_option("--scratch-sites", options.scratch_sites, "lines that make scratch blocks")
      ->capture_default_str();
  app.add_option("--scratch-alive", options.scratch_alive,
                 "scratch blocks alive at a time, with lifetimes of all lengths");
  app.add_option("--accesses", options.accesses, "reads and writes of each scratch block");
  app.add_option("--layers", options.layers, "layers of the model")->capture_default_str();
  app.add_option("--layer-bytes", options.layer_bytes, "bytes of a layer's block")
      ->capture_default_str();
  app.add_option("--devices", options.devices, "cpu, cuda:0, npu:1, ...")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--step-ns", options.step_ns, "length of a step")->capture_default_str();
  app.add_option("--step-source", options.step_source, "api, optimizer or none")
      ->capture_default_str();
  app.add_option("--leak", leaks,
                 "NAME:BYTES[:BLOCKS[:FIRST_STEP[:DEVICE]]] a step; may be repeated");
  app.add_flag("--holders", holders, "say who holds the leaked blocks");
  app.add_option("--cache", cache, "bytes a step into a cache that fills");
  app.add_option("--cache-until", cache_until, "the step after which it is full")
      ->capture_default_str();
  app.add_option("--sawtooth", sawtooth, "bytes a step into a buffer that is emptied");
  app.add_option("--sawtooth-period", sawtooth_period, "every so many steps")
      ->capture_default_str();
  app.add_option("--jump", jump, "bytes by which the level jumps once");
  app.add_option("--jump-at", jump_at, "in this step")->capture_default_str();
  app.add_flag("--no-phases", no_phases, "no phase records");
  app.add_flag("--owners", options.owners, "owners of parameters and optimizer states");
  app.add_flag("--marks", options.marks, "a range a step");
  app.add_flag("--counters", options.counters, "rss a step");
  app.add_option("--preexisting", options.preexisting, "blocks from before the hooks came");
  app.add_option("--pause-after", options.pause_after, "stop and start again after this step");
  app.add_option("--dropped", options.dropped, "pairs of events that found no slot");
  const std::map<std::string, SynthEnd> ends{
      {"stop", SynthEnd::kStop}, {"exit", SynthEnd::kExit}, {"killed", SynthEnd::kKilled}};
  app.add_option("--end", options.end, "stop, exit or killed")
      ->transform(CLI::CheckedTransformer(ends));
  app.add_option("--format-doc", format_doc,
                 "bring FILE (docs/trace-format.md) up to date with the record table, no more")
      ->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  if (!format_doc.empty()) return update_format_doc(format_doc);
  try {
    for (const std::string& leak : leaks) options.leaks.push_back(parse_leak(leak));
  } catch (const std::exception&) {
    std::fprintf(stderr,
                 "msmemscope-synth: --leak: a number was expected, e.g. --leak f:1048576\n");
    return 2;
  }
  for (SynthLeak& leak : options.leaks) leak.holder = holders;
  if (cache != 0) options.cache = {cache, cache_until};
  if (sawtooth != 0) options.sawtooth = {sawtooth, sawtooth_period};
  if (jump != 0) options.jump = {jump, jump_at};
  options.phases = !no_phases;
  const auto answers = memscope::synthesize(options);
  if (!answers) {
    std::fprintf(stderr, "msmemscope-synth: %s\n", answers.error().message.c_str());
    return 2;
  }
  std::printf("%s\n", answers.value().run.c_str());
  return 0;
}
