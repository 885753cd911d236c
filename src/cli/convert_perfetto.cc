#include "cli/convert_perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/output.h"
#include "cli/progress.h"
#include "export/draft_file.h"
#include "export/perfetto.h"
#include "report/format.h"
#include "report/text.h"

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;

// "train.py rank 3"
std::string name_of(const InputInfo& info) {
  if (!info.process) return fs::path(info.path).filename().string();
  std::string name = program_name(info.process->argv0, info.process->command);
  if (name.empty()) name = fs::path(info.path).filename().string();
  if (info.process->rank) name += fmt::format(" rank {}", *info.process->rank);
  return name;
}

uint64_t first_time(std::vector<Input>& inputs) {
  uint64_t first = ~uint64_t{0};
  for (Input& input : inputs) {
    const TimeRange range = input.visit([](auto& source) { return source.time_range(); });
    if (range.first != 0) first = std::min(first, range.first);
  }
  return first == ~uint64_t{0} ? 0 : first;
}

void tell(const PerfettoReport& all, const DraftFile& draft, uint64_t rows) {
  std::string left_out;
  const auto add = [&left_out](uint64_t count, const char* what) {
    if (count == 0) return;
    left_out += fmt::format("{}{}", left_out.empty() ? "; left out: " : ", ",
                            format_plural(static_cast<int64_t>(count), what));
  };
  add(all.blocks_left_out, "smaller block");
  add(all.slices_left_out, "later slice");
  add(all.counters_left_out, "value");
  say(fmt::format("wrote {} ({}{}); open it in Perfetto's UI", draft.path(),
                  format_plural(static_cast<int64_t>(rows), "event"), left_out));
}

}  // namespace

bool is_perfetto(const ConvertRequest& request) {
  return !request.is_directory && request.target.ends_with(".json.gz");
}

int convert_to_perfetto(std::vector<Input>& inputs, const ConvertRequest& request) {
  if (request.first_step != 0) {
    return fail("convert: --steps is for csv and db; Perfetto shows any part of a run");
  }
  std::vector<fs::path> keep;
  for (const Input& input : inputs) {
    for (fs::path& file : input.files()) keep.push_back(std::move(file));
  }
  auto draft = DraftFile::create(request.target, keep);
  if (!draft) return fail(draft.error().message);
  auto file = PerfettoFile::begin(draft.value().fd(), request.target);
  if (!file) return fail(file.error().message);
  PerfettoReport all;
  const uint64_t origin = first_time(inputs);
  std::set<int64_t> pids;
  Progress progress;
  int status = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputInfo info = inputs[i].info();
    PerfettoRequest one{.device = request.device, .origin = origin, .name = name_of(info)};
    // Ranks on several machines may have the same one.
    one.pid = info.process ? info.process->pid : 1;
    while (!pids.insert(one.pid).second) one.pid += 10'000'000;
    one.progress = [&](uint64_t) {
      progress.share("converting", static_cast<double>(i) / static_cast<double>(inputs.size()));
    };
    const PerfettoReport report =
        inputs[i].visit([&](auto& source) { return write_perfetto(source, one, file.value()); });
    all.events += report.events;
    all.blocks += report.blocks;
    all.blocks_left_out += report.blocks_left_out;
    all.slices_left_out += report.slices_left_out;
    all.counters_left_out += report.counters_left_out;
    say_damage(inputs[i].damage());
    if (inputs[i].lost()) status = 2;
  }
  progress.clear();
  if (all.events == 0) {
    return fail(fmt::format("convert: {}: nothing was recorded in it, so there is nothing to write",
                            request.inputs.front()));
  }
  const uint64_t rows = file.value().events();
  if (const auto done = file.value().finish(); !done) return fail(done.error().message);
  if (const auto done = draft.value().commit(); !done) return fail(done.error().message);
  if (!request.quiet) tell(all, draft.value(), rows);
  return status;
}

}  // namespace memscope::cli
