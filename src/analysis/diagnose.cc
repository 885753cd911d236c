#include "analysis/diagnose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "analysis/glob.h"

namespace memscope {
namespace {

constexpr double kSure = 0.5;  // from here on a finding is a verdict

int64_t whole(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

// -- steps ----------------------------------------------------------------------------------------

std::vector<double> pool_curve(const Pool& pool) {
  std::vector<double> curve;
  for (const PoolBucket& bucket : pool.buckets) curve.push_back(static_cast<double>(bucket.end));
  return curve;
}

// The last step of warm-up: that of the place which takes longest to settle.
uint32_t warmup_of(const ReplayResult& replay) {
  const Buckets& buckets = replay.buckets;
  if (buckets.steps == 0) return 0;
  size_t points = warmup_points(std::vector<double>(buckets.count()));
  for (const Pool& pool : replay.pools) {
    std::vector<double> curve = pool_curve(pool);
    curve.resize(buckets.count(), curve.empty() ? 0 : curve.back());
    points = std::max(points, warmup_points(curve));
  }
  return buckets.last_step(static_cast<uint32_t>(points) - 1);
}

// Of each input: the longest of those with the same kind of steps, so that ranks are alike.
std::vector<uint32_t> warmups_of(const std::vector<DiagnoseInput>& inputs,
                                 const DiagnoseOptions& options) {
  std::array<uint32_t, kStepsFromCount> longest{};
  for (const DiagnoseInput& input : inputs) {
    uint32_t& warmup = longest[static_cast<size_t>(input.replay.plan.from)];
    warmup = std::max(warmup, warmup_of(input.replay));
  }
  std::vector<uint32_t> warmups;
  for (const DiagnoseInput& input : inputs) {
    const StepsFrom from = input.replay.plan.from;
    const bool given = options.first_step > 1 && from != StepsFrom::kTime;
    warmups.push_back(given ? options.first_step - 1 : longest[static_cast<size_t>(from)]);
  }
  return warmups;
}

StepSummary summarize_steps(const std::vector<DiagnoseInput>& inputs,
                            const std::vector<uint32_t>& warmups, const DiagnoseOptions& options) {
  StepSummary steps;
  StepsFrom from = StepsFrom::kNone;
  uint32_t warmup = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const StepPlan& plan = inputs[i].replay.plan;
    if (plan.from < from) continue;
    steps.count = std::max<int64_t>(plan.from == from ? steps.count : 0, plan.count());
    from = plan.from;
    warmup = warmups[i];
  }
  steps.source = std::string(steps_from_name(from));
  if (from == StepsFrom::kTime || from == StepsFrom::kNone) {
    steps.count = 0;  // windows are no steps
  } else if (steps.count != 0) {
    // The steps asked for (those after B are not in the plan).
    const int64_t first = std::max<int64_t>(1, options.first_step);
    steps.warmup_until = std::min<int64_t>(warmup, steps.count);
    if (first <= steps.count) {
      steps.first = first;
      steps.last = steps.count;
    }
    steps.count = std::max<int64_t>(0, steps.count - first + 1);
  }
  return steps;
}

// -- inputs and layers ----------------------------------------------------------------------------

void complete_summary(DiagnoseInput& input) {
  InputSummary& summary = input.summary;
  const SideRecords& side = input.replay.side;
  if (!summary.process && side.process) {
    InputSummary::Process process{
        .host = side.process->host, .pid = side.process->pid, .argv0 = side.process->argv0};
    if (side.process->rank >= 0) process.rank = side.process->rank;
    summary.process = std::move(process);
    if (!side.process->agent.empty()) summary.agent = side.process->agent;
  }
  if (summary.ended == "unknown") summary.ended = side.ended;
  summary.dropped = std::max(summary.dropped, whole(side.dropped));
  if (summary.dropped != 0 || input.replay.preexisting != 0) summary.complete = false;
}

Peaks peaks_of(const PoolLevel& level) {
  return {whole(level.start), whole(level.peak), whole(level.end)};
}

LayerSummary summarize_layer(const Pool& pool, const DiagnoseInput& input, int64_t index,
                             const JudgedSteps& steps) {
  LayerSummary layer{.input = index,
                     .device = device_name(pool.where.device),
                     .layer = std::string(layer_name(pool.where.layer)),
                     .allocated = peaks_of(pool.allocated)};
  if (pool.has_totals) layer.reserved = peaks_of(pool.reserved);
  if (pool.where.layer == Layer::kHost && input.replay.host_sample != 0) {
    const auto error = [](uint64_t noise) {
      return static_cast<int64_t>(std::llround(kTwoSided95 * standard_error(noise)));
    };
    layer.sampled_every = whole(input.replay.host_sample);
    layer.peak_error = error(pool.peak_noise);
    layer.end_error = error(pool.live_noise);
  }
  if (steps.enough() && input.replay.plan.from != StepsFrom::kTime) {
    std::vector<double> curve = pool_curve(pool);
    curve.resize(steps.x.size(), curve.empty() ? 0 : curve.back());
    const std::span<const double> x(steps.x), y(curve);
    layer.bytes_per_step = fit_line(x.subspan(steps.begin - 1), y.subspan(steps.begin - 1)).slope;
  }
  return layer;
}

// Of a verdict on a sampled layer, or on all of them: how, and how far off the layer's figures are.
void add_sampling(const Diagnosis& diagnosis, Verdict& verdict) {
  int64_t every = 0, peak = 0, end = 0;
  for (const LayerSummary& layer : diagnosis.layers) {
    if (verdict.layer && verdict.layer != layer.layer) continue;
    every = std::max(every, layer.sampled_every);
    peak = std::max(peak, layer.peak_error);
    end = std::max(end, layer.end_error);
  }
  if (every == 0) return;
  verdict.evidence["sampled_every_bytes"] = every;
  verdict.evidence["layer_peak_error_bytes"] = peak;
  verdict.evidence["layer_end_error_bytes"] = end;
}

// -- none -----------------------------------------------------------------------------------------

Verdict none_verdict(const std::vector<DiagnoseInput>& inputs, const std::vector<uint32_t>& warmups,
                     const Diagnosis& diagnosis, const DiagnoseOptions& options) {
  Verdict none;
  none.cause = "none";
  none.confidence = 0.95;
  const bool timed = diagnosis.steps.source == "time";
  double limit = 0;
  uint32_t judged = 0;
  bool enough = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ReplayResult& replay = inputs[i].replay;
    none.processes.push_back(static_cast<int64_t>(i));
    const JudgedSteps steps = judged_steps(replay, warmups[i]);
    judged = std::max(judged, steps.steps);
    enough = enough && steps.enough();
    double length = std::max(1u, steps.steps);
    if (replay.plan.from == StepsFrom::kTime && steps.enough()) {
      length = std::max(1.0, steps.x.back() - steps.x[steps.begin - 1]);
    }
    for (const Pool& pool : replay.pools) {
      limit = std::max(limit, detection_limit(replay, pool, steps) / length);
    }
  }
  if (limit == 0) limit = kMinTotal / std::max(1u, judged);
  none.evidence[timed ? "detection_limit_bytes_per_second" : "detection_limit_bytes_per_step"] =
      limit;
  none.evidence["steps"] = static_cast<int64_t>(judged);
  add_sampling(diagnosis, none);
  if (!enough) none.confidence = 0.5;
  if (diagnosis.dropped_events != 0) none.confidence = std::min(none.confidence, 0.8);
  if (diagnosis.steps.source == "none") {
    none.evidence["reason"] = std::string("no steps were seen and the run is shorter than 30 s");
    none.advice =
        "Call msmemscope.step() at the end of each step, or let the run last longer than 30 s: "
        "growth can only be judged over steps.";
  } else if (options.first_step > 1 && diagnosis.steps.source != "time" && !diagnosis.steps.first) {
    none.evidence["reason"] =
        "the input has no step " + std::to_string(options.first_step) + " and none after it";
    none.advice = "Ask for steps that the input has: growth is judged over the steps given.";
  } else if (judged < kMinSteps) {
    none.evidence["reason"] = std::to_string(judged) + " steps after warm-up, " +
                              std::to_string(kMinSteps) + " are needed";
    none.advice = "Run at least " + std::to_string(kMinSteps) +
                  " steps after warm-up: growth cannot be judged from fewer.";
  } else {
    none.advice =
        "Nothing to do: what grows slower than the detection limit would need a longer "
        "run to be seen.";
  }
  none.id = verdict_id(none);
  return none;
}

bool names_function(const std::string& pattern, const std::string& text) {
  if (glob_matches(pattern, text)) return true;
  // `train.py:step` for /home/me/train.py:step.
  return pattern.front() != '/' && pattern.front() != '*' && glob_matches("*/" + pattern, text);
}

// Before any line is blamed: which it is may depend on them.
std::vector<NativeNames> name_natives(const std::vector<DiagnoseInput>& inputs,
                                      Symbolizer& symbolizer) {
  std::vector<NativeNames> names;
  std::vector<StackToName> stacks;
  names.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DiagnoseInput& input = inputs[i];
    names.emplace_back(symbolizer, *input.stacks, *input.strings, input.replay.side);
    add_stacks(i, input.replay, stacks);
  }
  name_stacks(symbolizer, names, std::move(stacks));
  return names;
}

void report_pools(const std::vector<DiagnoseInput>& inputs, const std::vector<Leak>& leaks,
                  std::vector<PoolReport>& reports) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ReplayResult& replay = inputs[i].replay;
    for (const Pool& pool : replay.pools) {
      PoolReport report{.input = static_cast<int64_t>(i),
                        .where = pool.where,
                        .min_gap = pool.min_gap,
                        .max_gap = pool.max_gap,
                        .steps = pool.buckets,
                        .bucket_width = replay.buckets.width};
      const size_t lead = std::min<size_t>(replay.buckets.lead(), report.steps.size());
      report.steps.erase(report.steps.begin(), report.steps.begin() + static_cast<ptrdiff_t>(lead));
      for (const Leak& leak : leaks) {
        for (const LeakedBlock& block : leak.blocks) {
          if (block.input == i && block.where == pool.where) report.leaked.push_back(block);
        }
        for (const Leak::Share& share : leak.shares) {
          if (share.input != i || share.where != pool.where) continue;
          report.leaked_bytes += share.bytes;
          report.leaked_blocks += share.blocks;
        }
      }
      std::stable_sort(report.leaked.begin(), report.leaked.end(),
                       [](const LeakedBlock& a, const LeakedBlock& b) { return a.step < b.step; });
      reports.push_back(std::move(report));
    }
  }
}

}  // namespace

ReplayOptions replay_options(const DiagnoseOptions& options) {
  return {
      .first_step = options.first_step, .last_step = options.last_step, .device = options.device};
}

bool is_suppressed(const Verdict& verdict, const std::vector<std::string>& patterns) {
  std::vector<std::string> texts;
  if (verdict.site) texts.push_back(function_text(*verdict.site));
  const auto named = verdict.evidence.find("label");
  const auto* label =
      named == verdict.evidence.end() ? nullptr : std::get_if<std::string>(&named->second);
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    if (pattern.empty()) return false;
    if (verdict.owner && glob_matches(pattern, *verdict.owner)) return true;
    if (label && glob_matches(pattern, *label)) return true;
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string& text) { return names_function(pattern, text); });
  });
}

DiagnoseResult diagnose(std::vector<DiagnoseInput>& inputs, const DiagnoseOptions& options) {
  DiagnoseResult result;
  Diagnosis& diagnosis = result.diagnosis;
  diagnosis.tool = "msmemscope " MEMSCOPE_VERSION;
  const std::vector<uint32_t> warmups = warmups_of(inputs, options);
  diagnosis.steps = summarize_steps(inputs, warmups, options);

  std::vector<std::string> patterns = options.suppressions;
  Symbolizer symbolizer(options.symbols);
  const std::vector<NativeNames> names = name_natives(inputs, symbolizer);
  std::vector<Sites> sites;
  sites.reserve(inputs.size());  // LeakInputs point into it
  std::vector<LeakInput> leak_inputs;
  std::set<std::string> devices;
  for (size_t i = 0; i < inputs.size(); ++i) {
    DiagnoseInput& input = inputs[i];
    complete_summary(input);
    const int64_t index = static_cast<int64_t>(i);
    diagnosis.inputs.push_back(input.summary);
    diagnosis.dropped_events += input.summary.dropped;
    diagnosis.ambiguous += whole(input.replay.ambiguous);
    for (const GapSeen& gap : input.replay.side.gaps) {
      diagnosis.gaps.push_back({index, gap.from, gap.to, gap.reason});
    }
    const auto [first, last] = input.replay.side.config.equal_range("expect_growth");
    for (auto at = first; at != last; ++at) patterns.push_back(at->second);
    sites.emplace_back(*input.stacks, *input.strings, input.replay.side.sources, &names[i]);
    const std::string& ended = input.summary.ended;
    leak_inputs.push_back(
        {&input.replay, &sites.back(), i, warmups[i], ended == "stop" || ended == "exit"});
    const JudgedSteps steps = judged_steps(input.replay, warmups[i]);
    for (const Pool& pool : input.replay.pools) {
      devices.insert(device_name(pool.where.device));
      diagnosis.layers.push_back(summarize_layer(pool, input, index, steps));
    }
  }
  diagnosis.devices.assign(devices.begin(), devices.end());

  std::vector<Leak> reported;
  FoundLeaks found = find_leaks(leak_inputs);
  diagnosis.suspect_groups = std::move(found.suspect_groups);
  for (Leak& leak : found.leaks) {
    // Per second only where the run as a whole has no steps (the contract).
    if (diagnosis.steps.source != "time") leak.verdict.bytes_per_second.reset();
    add_sampling(diagnosis, leak.verdict);
    if (is_suppressed(leak.verdict, patterns)) {
      diagnosis.suppressed.push_back(leak.verdict);
    } else if (leak.verdict.confidence < kSure) {
      diagnosis.suspects.push_back(leak.verdict);
    } else if (options.top == 0 || diagnosis.verdicts.size() < options.top) {
      diagnosis.verdicts.push_back(leak.verdict);
      reported.push_back(std::move(leak));
    }
  }
  if (diagnosis.verdicts.empty()) {
    diagnosis.verdicts.push_back(none_verdict(inputs, warmups, diagnosis, options));
  }
  report_pools(inputs, reported, result.pools);
  result.notes = symbolizer.notes();
  return result;
}

}  // namespace memscope
