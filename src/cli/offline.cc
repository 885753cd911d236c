// The verbs behind the package's msmemscope.analyzer: what check_leaks and check_inefficient ask.
// Not in the help; each prints one JSON object.
//
//   msmemscope offline-leaks --mark TEXT --start N [--all] INPUT
//   msmemscope offline-inefficient [--mem-size N] [--types LIST] [--idle-threshold N]
//                                  [--output FILE] INPUT
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/inefficient.h"
#include "analysis/mark_leaks.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "export/draft_file.h"
#include "export/inefficient_rows.h"
#include "import/attributes.h"
#include "import/csv_rows.h"
#include "import/db_rows.h"
#include "import/find_inputs.h"
#include "import/open_input.h"

namespace memscope::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kListed = 1000;  // blocks in an answer

// As msMemScope's files name them.
std::string device_id(Device device) {
  return device.index == Device::kNoIndex ? device_name(device) : std::to_string(device.index);
}

const char* event_type(Layer layer) {
  switch (layer) {
    case Layer::kDriver:
      return "HAL";
    case Layer::kPool:
      return "PTA";
    case Layer::kPoolAtb:
      return "ATB";
    case Layer::kPoolMindSpore:
      return "MINDSPORE";
    case Layer::kWorkspace:
      return "PTA_WORKSPACE";
    case Layer::kTensor:
    case Layer::kPinned:
      return "HOST";
    case Layer::kHost:
      return "HOST_MALLOC";
    case Layer::kPython:
      return "PYTHON";
  }
  return "?";
}

Result<std::vector<Input>> open_all(const std::string& path) {
  const auto paths = find_inputs(path);
  if (!paths) return paths.error();
  std::vector<Input> inputs;
  for (const std::filesystem::path& one : paths.value()) {
    auto opened = open_input(one);
    if (!opened) return opened.error();
    for (Input& input : opened.value()) inputs.push_back(std::move(input));
  }
  return inputs;
}

int answer(const Json& json, const std::vector<Input>& inputs) {
  const auto written =
      write_to("stdout", json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  if (!written) return fail(written.error().message);
  std::vector<std::string> said;
  bool lost = false;
  for (const Input& input : inputs) {
    lost = lost || input.lost();
    for (std::string& line : input.damage()) {
      if (std::find(said.begin(), said.end(), line) != said.end()) continue;
      say(line);
      said.push_back(std::move(line));
    }
  }
  return lost ? 2 : 0;
}

// -- leaks ----------------------------------------------------------------------------------------

// IDs of MALLOC rows: events have none. Looked up for what leaked, in one more pass over the rows.
class RowIds {
 public:
  void want(const MarkLeak& leak, int64_t* id) {
    wanted_.emplace(std::pair{leak.time, leak.addr}, std::pair{event_type(leak.where.layer), id});
  }
  void look(const FileRow& row) {
    if (row[Column::kEvent] != "MALLOC") return;
    const auto time = file_time(row[Column::kTime]);
    const auto addr = file_count(row[Column::kPtr]);
    const auto id = file_count(row[Column::kId]);
    if (!time || !addr || !id) return;
    const auto [first, last] = wanted_.equal_range({*time, *addr});
    for (auto at = first; at != last; ++at) {
      // Old files spell some types otherwise; a block of another layer has the type of its own.
      const bool same = row[Column::kEventType].starts_with(at->second.first);
      if (same || std::next(first) == last) *at->second.second = static_cast<int64_t>(*id);
    }
  }
  void look_in(const std::string& path) {
    if (wanted_.empty()) return;
    if (file_kind(path) == FileKind::kCsv) {
      auto rows = CsvRows::open(path);
      for (CsvRows::Row row; rows && rows.value().next(row);) {
        if (row.problem.empty()) look(row.cells);
      }
    } else if (file_kind(path) == FileKind::kDb) {
      auto rows = DbRows::open(path);
      for (FileRow row; rows && rows.value().next(row);) look(row);
    }
  }

 private:
  std::multimap<std::pair<uint64_t, uint64_t>, std::pair<std::string, int64_t*>> wanted_;
};

Json window_json(const MarkWindow& window, const std::vector<int64_t>& ids) {
  Json leaks = Json::array();
  for (size_t i = 0; i < window.leaks.size(); ++i) {
    const MarkLeak& leak = window.leaks[i];
    leaks.push_back(Json{{"event_type", event_type(leak.where.layer)},
                         {"addr", leak.addr},
                         {"size", leak.size},
                         {"index", ids[i] < 0 ? Json(nullptr) : Json(ids[i])},
                         {"time_ns", leak.time}});
  }
  return Json{{"index", window.index},
              {"at_end", window.at_end},
              {"bytes", window.bytes},
              {"blocks", window.blocks},
              {"leaks", std::move(leaks)}};
}

}  // namespace

int offline_leaks_command(const std::vector<std::string>& words) {
  MarkLeaksOptions options;
  std::string path;
  CLI::App app;
  app.add_option("--mark", options.mark)->required();
  app.add_option("--start", options.start_index);
  app.add_flag("--all", options.all);
  app.add_option("INPUT", path)->required();
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("offline-leaks: {}", error.what()));
  }
  auto inputs = open_all(path);
  if (!inputs) return fail(inputs.error().message);
  Json devices = Json::array();
  for (Input& input : inputs.value()) {
    const auto found = input.visit([&](auto& source) { return find_mark_leaks(source, options); });
    RowIds ids;
    std::vector<std::vector<std::vector<int64_t>>> known;  // by device, window, leak
    for (const MarkedDevice& device : found) {
      auto& windows = known.emplace_back();
      for (const MarkWindow& window : device.windows) {
        windows.emplace_back(window.leaks.size(), -1);
      }
    }
    for (size_t d = 0; d < found.size(); ++d) {
      for (size_t w = 0; w < found[d].windows.size(); ++w) {
        const std::vector<MarkLeak>& leaks = found[d].windows[w].leaks;
        for (size_t i = 0; i < leaks.size(); ++i) ids.want(leaks[i], &known[d][w][i]);
      }
    }
    ids.look_in(input.info().path);
    const InputInfo info = input.info();
    for (size_t d = 0; d < found.size(); ++d) {
      // Rows that tell no device: as the original none of them is looked at, unless one leaks.
      const Device device = found[d].device;
      const bool untold = device.type != Device::kCpu && device.index == Device::kNoIndex;
      const bool leaks = std::any_of(found[d].windows.begin(), found[d].windows.end(),
                                     [](const MarkWindow& window) { return window.blocks != 0; });
      if (untold && !leaks) continue;
      Json windows = Json::array();
      for (size_t w = 0; w < found[d].windows.size(); ++w) {
        windows.push_back(window_json(found[d].windows[w], known[d][w]));
      }
      devices.push_back(Json{{"device", untold ? "N/A" : device_id(device)},
                             {"pid", info.process ? Json(info.process->pid) : Json(nullptr)},
                             {"marks", found[d].marks},
                             {"windows", std::move(windows)}});
    }
  }
  return answer(Json{{"schema", 1}, {"devices", std::move(devices)}}, inputs.value());
}

// -- inefficient ----------------------------------------------------------------------------------

namespace {

Result<uint8_t> types_from(const std::string& list) {
  uint8_t types = 0;
  for (const std::string& item : split_list(list)) {
    uint8_t found = 0;
    for (const uint8_t type : {Inefficiency::kEarlyAllocation, Inefficiency::kLateDeallocation,
                               Inefficiency::kTemporaryIdleness}) {
      if (inefficiency_text(type) == item) found = type;
    }
    if (found == 0) return Error{fmt::format("offline-inefficient: no type \"{}\"", item)};
    types |= found;
  }
  return types;
}

struct InefficientTotals {
  uint64_t blocks = 0, accesses = 0, found = 0, bytes = 0;
  std::map<std::string, uint64_t> by_type;
  std::vector<InefficientBlock> largest;
  std::vector<InefficientRow> rows;
};

void take(const std::vector<InefficientBlock>& found, uint64_t pid, InefficientTotals& totals) {
  for (const InefficientBlock& block : found) {
    ++totals.found;
    totals.bytes += block.size;
    for (const std::string& type : split_list(inefficiency_text(block.types))) {
      ++totals.by_type[type];
    }
    totals.rows.push_back(
        {pid, block.time, block.addr, block.where.layer == Layer::kPoolAtb, block.types});
  }
  totals.largest.insert(totals.largest.end(), found.begin(), found.end());
  const size_t kept = std::min(kListed, totals.largest.size());
  std::partial_sort(
      totals.largest.begin(), totals.largest.begin() + static_cast<std::ptrdiff_t>(kept),
      totals.largest.end(), [](const auto& a, const auto& b) { return a.size > b.size; });
  totals.largest.resize(kept);
}

}  // namespace

int offline_inefficient_command(const std::vector<std::string>& words) {
  InefficientOptions options;
  std::string path, output, types = inefficiency_text(Inefficiency::kAll);
  CLI::App app;
  app.add_option("--mem-size", options.least_size);
  app.add_option("--types", types);
  app.add_option("--idle-threshold", options.idle_threshold);
  app.add_option("--output", output);
  app.add_option("INPUT", path)->required();
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("offline-inefficient: {}", error.what()));
  }
  const auto chosen = types_from(types);
  if (!chosen) return fail(chosen.error().message);
  options.types = chosen.value();
  // A link stays a link: what it leads to is read, with what lies beside that, and written.
  for (std::string* name : {&path, &output}) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::canonical(*name, error);
    if (!error) *name = file.string();
  }
  remove_drafts_on_signals();
  auto inputs = open_all(path);
  if (!inputs) return fail(inputs.error().message);

  InefficientTotals totals;
  for (Input& input : inputs.value()) {
    InefficientFinder finder(options);
    input.visit([&](auto& source) {
      for_each_event(source, [&](const Event& event) { finder.feed(event); });
    });
    totals.blocks += finder.blocks();
    totals.accesses += finder.accesses();
    const InputInfo info = input.info();
    take(finder.finish(), info.process ? info.process->pid : 0, totals);
  }
  WrittenRows written;
  if (!output.empty()) {
    auto done = write_inefficient_rows(path, output, totals.rows);
    if (!done) return fail(done.error().message);
    written = done.value();
  }
  Json by_type = Json::object();
  for (const std::string& type : split_list(types)) by_type[type] = totals.by_type[type];
  Json largest = Json::array();
  for (const InefficientBlock& block : totals.largest) {
    largest.push_back(Json{{"event_type", event_type(block.where.layer)},
                           {"device", device_id(block.where.device)},
                           {"addr", block.addr},
                           {"size", block.size},
                           {"time_ns", block.time},
                           {"types", split_list(inefficiency_text(block.types))}});
  }
  return answer(Json{{"schema", 1},
                     {"blocks", totals.blocks},
                     {"accesses", totals.accesses},
                     {"found", totals.found},
                     {"bytes", totals.bytes},
                     {"by_type", std::move(by_type)},
                     {"rows", Json{{"matched", written.matched}, {"changed", written.changed}}},
                     {"largest", std::move(largest)}},
                inputs.value());
}

}  // namespace memscope::cli
