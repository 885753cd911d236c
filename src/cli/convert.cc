#include "cli/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "cli/convert_perfetto.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "export/draft_file.h"
#include "export/dump.h"
#include "import/open_input.h"
#include "report/format.h"

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;
constexpr size_t kListed = 10;  // files named one by one

std::map<std::string, std::string> configs_of(const Input& input) {
  return input.trace() == nullptr ? std::map<std::string, std::string>()
                                  : input.trace()->info().configs;
}

DumpFormat format_of(const Input& input) {
  const auto configs = configs_of(input);
  const auto format = configs.find("format");
  return format != configs.end() && format->second == "db" ? DumpFormat::kDb : DumpFormat::kCsv;
}

DumpRequest dump_request(const Input& input, const ConvertRequest& request, bool several,
                         Progress& progress) {
  DumpRequest dump;
  dump.settings = settings_of(configs_of(input));
  dump.settings.compat = request.compat;
  dump.settings.first_step = request.first_step;
  dump.settings.last_step = request.last_step;
  if (request.call_stack) set_call_stack(dump.settings, *request.call_stack);
  if (request.events) set_events(dump.settings, *request.events);
  dump.device = request.device;
  dump.one_of_many = several;
  dump.name = input.info().path;
  dump.progress = [&progress](uint64_t done, uint64_t events) { progress.show(done, events); };
  return dump;
}

// What tells processes of one pid apart. A trace is a process; of a dump's files those of one
// msmemscope_<pid>_<time>_ascend are, or those that lie together.
std::string identity_of(const Input& input) {
  const fs::path file = input.info().path;
  if (input.trace() != nullptr) return file.string();
  fs::path directory = file.parent_path();
  const fs::path device = directory.parent_path();
  if (directory.filename() == "dump" && device.filename().string().starts_with("device_")) {
    directory = device.parent_path();
  }
  return directory.string();
}

DumpProcess process_of(const Input& input) {
  DumpProcess process;
  const InputInfo info = input.info();
  if (info.process) process.pid = info.process->pid;
  process.identity = identity_of(input);
  process.tid_of = [&input](ThreadId thread) {
    const auto& threads = input.threads();
    return thread.value < threads.size() ? threads[thread.value].tid : 0;
  };
  return process;
}

// What is said of one process's dump.
void tell(const DumpReport& report, const std::string& name, const ConvertRequest& request) {
  if (report.frees_left_out != 0) {
    say(fmt::format("{}: {} of blocks that were never seen left out: their size is not known", name,
                    format_plural(static_cast<int64_t>(report.frees_left_out), "free")));
  }
  if (report.gaps_left_out != 0) {
    say(
        fmt::format("{}: {} in which events may be missing: a dump has no row for that, the trace "
                    "does, see msmemscope info",
                    name, format_plural(static_cast<int64_t>(report.gaps_left_out), "gap")));
  }
  if (report.calls_left_out != 0) {
    say(
        fmt::format("{}: {} of the Python trace left out: a .csv has no place for them, -o FILE.db "
                    "and -o DIR/ have",
                    name, format_plural(static_cast<int64_t>(report.calls_left_out), "call")));
  }
  if (request.quiet) return;
  for (size_t i = 0; i < std::min(report.files.size(), kListed); ++i) {
    say(fmt::format("wrote {} ({})", report.files[i].path,
                    format_plural(static_cast<int64_t>(report.files[i].rows), "row")));
  }
  if (report.files.size() > kListed) {
    say(fmt::format("and {} more", report.files.size() - kListed));
  }
}

// Of a past that the disk budget has folded there are no events to write.
void tell_of_folded(const Input& input) {
  if (input.trace() == nullptr) return;
  const TraceInfo::Folded& folded = input.trace()->info().folded;
  if (folded.folds == 0) return;
  const std::string steps =
      folded.steps == 0
          ? ""
          : fmt::format(" (steps 1 to {})", format_count(static_cast<int64_t>(folded.steps)));
  say(fmt::format(
      "{}: its first {}{} are folded (disk budget): of them there is what was alive at "
      "their end",
      input.info().path, format_plural(static_cast<int64_t>(folded.events), "event"), steps));
}

std::string all_names(const std::vector<Input>& inputs) {
  std::string names;
  for (size_t i = 0; i < std::min(inputs.size(), kListed); ++i) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", inputs[i].info().path);
  }
  return inputs.size() > kListed ? names + ", ..." : names;
}

// Where the dumps in a directory are the input, new ones in it would be found beside them by
// whoever reads it next, and everything counted twice. (Traces are: theirs is the place for dumps.)
Result<void> check_outside(const std::vector<Input>& inputs, const ConvertRequest& request) {
  const bool dumps = std::any_of(inputs.begin(), inputs.end(),
                                 [](const Input& input) { return input.trace() == nullptr; });
  if (!dumps || !request.is_directory) return {};
  std::error_code error;
  const fs::path target = fs::weakly_canonical(request.target, error);
  for (const std::string& name : request.inputs) {
    const fs::path input = fs::weakly_canonical(name, error);
    if (!fs::is_directory(input, error)) continue;
    const auto [end, rest] =
        std::mismatch(input.begin(), input.end(), target.begin(), target.end());
    if (end != input.end() && !end->empty()) continue;  // "out/" has an empty last part
    return Error{fmt::format(
        "convert: {} lies in the input {}, whose dumps would be there twice; choose a directory "
        "outside of it with -o",
        request.target, name)};
  }
  return {};
}

// 0, or 2 after one line.
int convert_all(std::vector<Input>& inputs, const ConvertRequest& request) {
  if (inputs.size() > 1 && !request.is_directory) {
    return fail(
        fmt::format("convert: {} inputs and a file holds one process and device; name one of them "
                    "({}), or give a directory: -o DIR/",
                    inputs.size(), all_names(inputs)));
  }
  if (auto good = check_outside(inputs, request); !good) return fail(good.error().message);
  std::vector<fs::path> keep;
  for (const Input& input : inputs) {
    for (fs::path& file : input.files()) keep.push_back(std::move(file));
  }
  std::vector<fs::path> made;
  if (request.is_directory) {
    auto there = make_directories(request.target, &made);
    if (!there) {
      remove_empty(made);
      return fail(there.error().message);
    }
  }
  int status = 0;
  size_t files = 0;
  // Names must differ over all processes, whatever the format of each.
  std::array<std::optional<DumpFiles>, 2> targets;
  for (Input& input : inputs) {
    const DumpFormat format = request.format.value_or(format_of(input));
    auto& target = targets[static_cast<size_t>(format)];
    if (!target) {
      target.emplace(request.target, request.is_directory, format, request.compat, keep);
    }
    Progress progress;
    auto report = write_dump(input, process_of(input),
                             dump_request(input, request, inputs.size() > 1, progress), *target);
    progress.clear();
    if (!report) {
      status = fail(report.error().message);
      continue;
    }
    tell(report.value(), input.info().path, request);
    files += report.value().files.size();
    say_damage(input.damage());
    if (input.lost()) status = 2;
  }
  for (auto& target : targets) {
    if (target) target->remove_empty_directories();
  }
  remove_empty(made);
  if (files == 0 && status == 0 && request.device && inputs.size() > 1) {
    return fail(fmt::format("convert: {}: none of them has anything of {}", all_names(inputs),
                            device_name(*request.device)));
  }
  if (files == 0 && status == 0) {
    return fail(fmt::format("convert: {}: nothing was recorded in it, so there is nothing to write",
                            all_names(inputs)));
  }
  return status;
}

}  // namespace

int convert(const ConvertRequest& request) {
  auto paths = expand_inputs(request.inputs, request.all_runs);
  if (!paths) return fail(paths.error().message);
  std::vector<Input> inputs;
  int status = 0;
  for (const std::string& path : paths.value()) {
    auto opened =
        open_input(path, request.is_directory ? WhichProcesses::kAll : WhichProcesses::kWithBlocks);
    if (!opened) {
      status = fail(opened.error().message);
      continue;
    }
    if (const ImportedFile* file = opened.value().front().imported_file();
        file != nullptr && file->processes.size() > opened.value().size()) {
      say(fmt::format(
          "{}: {} of its {} processes left out, for want of a block: a file holds one "
          "process, -o DIR/ has all",
          path, file->processes.size() - opened.value().size(), file->processes.size()));
    }
    for (Input& input : opened.value()) {
      tell_of_folded(input);
      inputs.push_back(std::move(input));
    }
  }
  if (inputs.empty()) return status;
  if (is_perfetto(request)) return std::max(status, convert_to_perfetto(inputs, request));
  return std::max(status, convert_all(inputs, request));
}

}  // namespace memscope::cli
