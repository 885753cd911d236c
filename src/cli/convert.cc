#include "cli/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

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

std::vector<fs::path> files_of(const Input& input) {
  if (input.trace() == nullptr) return {input.info().path};
  return {input.trace()->info().log, input.trace()->info().slab};
}

DumpFormat format_of(const Input& input) {
  const auto configs = configs_of(input);
  const auto format = configs.find("format");
  return format != configs.end() && format->second == "db" ? DumpFormat::kDb : DumpFormat::kCsv;
}

DumpRequest dump_request(const Input& input, const ConvertRequest& request, Progress& progress) {
  DumpRequest dump;
  dump.settings = settings_of(configs_of(input));
  dump.settings.compat = request.compat;
  dump.settings.first_step = request.first_step;
  dump.settings.last_step = request.last_step;
  if (request.call_stack) set_call_stack(dump.settings, *request.call_stack);
  if (request.events) set_events(dump.settings, *request.events);
  dump.device = request.device;
  dump.name = input.info().path;
  dump.progress = [&progress](uint64_t done, uint64_t events) { progress.show(done, events); };
  return dump;
}

DumpProcess process_of(const Input& input) {
  DumpProcess process;
  const InputInfo info = input.info();
  if (info.process) process.pid = info.process->pid;
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

std::string all_names(const std::vector<Input>& inputs) {
  std::string names;
  for (size_t i = 0; i < std::min(inputs.size(), kListed); ++i) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", inputs[i].info().path);
  }
  return inputs.size() > kListed ? names + ", ..." : names;
}

// 0, or 2 after one line.
int convert_all(std::vector<Input>& inputs, const ConvertRequest& request) {
  if (inputs.size() > 1 && !request.is_directory) {
    return fail(
        fmt::format("convert: {} processes and a file holds one; name one of them ({}), or "
                    "give a directory: -o DIR/",
                    inputs.size(), all_names(inputs)));
  }
  std::vector<fs::path> keep;
  for (const Input& input : inputs) {
    for (fs::path& file : files_of(input)) keep.push_back(std::move(file));
  }
  if (request.is_directory) {
    auto there = make_directories(request.target);
    if (!there) return fail(there.error().message);
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
    auto report =
        write_dump(input, process_of(input), dump_request(input, request, progress), *target);
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
  if (files == 0 && status == 0) {
    return fail(fmt::format("convert: {}: no block of memory in it, so there is nothing to write",
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
    auto opened = open_input(path);
    if (!opened) {
      status = fail(opened.error().message);
      continue;
    }
    for (Input& input : opened.value()) inputs.push_back(std::move(input));
  }
  if (inputs.empty()) return status;
  return std::max(status, convert_all(inputs, request));
}

}  // namespace memscope::cli
