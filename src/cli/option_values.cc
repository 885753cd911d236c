#include "cli/option_values.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

namespace memscope::cli {
namespace {

constexpr std::string_view kWideComma = "\xEF\xBC\x8C";
constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxWatchName = 254;

Error refuse(std::string_view words, std::string_view option, std::string_view value,
             std::string_view allowed) {
  return Error{fmt::format("{} {} is \"{}\"; allowed: {}", words, option, value, allowed)};
}

// A decimal number without sign, blanks or anything after it.
std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string join(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ","));
}

bool contains(const std::vector<std::string>& items, std::string_view item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

// "npu:3" or "npu"; the number below `limit`.
bool is_device(std::string_view item, std::string_view type, uint64_t limit) {
  if (!item.starts_with(type)) return false;
  item.remove_prefix(type.size());
  if (item.empty()) return true;
  if (item.front() != ':') return false;
  const auto index = number(item.substr(1));
  return index && *index < limit;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::string plain(text);
  for (size_t at = plain.find(kWideComma); at != std::string::npos;
       at = plain.find(kWideComma, at)) {
    plain.replace(at, kWideComma.size(), ",");
  }
  std::vector<std::string> items;
  size_t at = 0;
  while (at <= plain.size()) {
    const size_t comma = std::min(plain.find(',', at), plain.size());
    std::string_view item = std::string_view(plain).substr(at, comma - at);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
    at = comma + 1;
  }
  return items;
}

Result<std::string> check_level(std::string_view value, Notes& notes) {
  std::vector<std::string> items = split_list(value);
  bool good = !items.empty();
  for (std::string& item : items) {
    for (const auto& [old_name, name] : {std::pair{"0", "op"}, std::pair{"1", "kernel"}}) {
      if (item != old_name) continue;
      notes.warnings.push_back(deprecation(old_name, name));
      item = name;
    }
    good = good && (item == "op" || item == "kernel");
  }
  if (!good) return refuse("invalid data trace level input.", "--level", value, "op, kernel");
  if (contains(items, "kernel")) notes.not_recorded.emplace_back("kernels (--level kernel)");
  return join(items);
}

Result<std::string> check_events(std::string_view value, Notes& notes) {
  const std::vector<std::string> items = split_list(value);
  bool good = !items.empty();
  for (const std::string& item : items) {
    good = good && (item == "alloc" || item == "free" || item == "launch" || item == "access" ||
                    item == "traceback" || item == "none");
  }
  if (!good) {
    return refuse("invalid event trace type input.", "--events", value,
                  "alloc, free, launch, access, traceback, none");
  }
  if (contains(items, "none")) {
    if (items.size() > 1) {
      notes.warnings.emplace_back("'none' mixed with other event types, all events cleared.");
    }
    return std::string("none");
  }
  for (const char* item : {"launch", "access", "traceback"}) {
    if (contains(items, item)) {
      notes.not_recorded.push_back(fmt::format("{} events (--events)", item));
    }
  }
  return join(items);
}

Result<std::string> check_steps(std::string_view value, Notes& notes) {
  const std::vector<std::string> items = split_list(value);
  bool good = !items.empty() && items.size() <= 5;
  for (const std::string& item : items) {
    const auto step = number(item);
    good = good && step && *step >= 1;
  }
  if (!good) {
    return refuse("invalid steps input.", "--steps", value, "1 to 5 whole numbers from 1 on");
  }
  notes.without_effect.emplace_back("--steps");
  return join(items);
}

Result<std::string> check_call_stack(std::string_view value, Notes&) {
  const std::vector<std::string> items = split_list(value);
  bool good = !items.empty();
  for (const std::string& item : items) {
    const size_t colon = item.find(':');
    const std::string kind = item.substr(0, colon);
    good = good && (kind == "c" || kind == "python");
    if (colon != std::string::npos) {
      const auto depth = number(std::string_view(item).substr(colon + 1));
      good = good && depth && *depth <= 1000;
    }
  }
  if (!good) {
    return refuse("invalid call-stack depth input.", "--call-stack", value,
                  "c[:DEPTH], python[:DEPTH], DEPTH 0 to 1000");
  }
  return join(items);
}

Result<std::string> check_collect_mode(std::string_view value, Notes&) {
  if (value != "immediate" && value != "deferred") {
    return refuse(
        "--collect-mode param is invalid. Collect mode can only be set to immediate,deferred.",
        "--collect-mode", value, "immediate, deferred");
  }
  return std::string(value);
}

Result<std::string> check_device(std::string_view value, Notes&) {
  const std::vector<std::string> items = split_list(value);
  bool good = !items.empty();
  for (const std::string& item : items) {
    good = good && (item == "auto" || item == "cpu" || item == "host" ||
                    is_device(item, "npu", 32) || is_device(item, "cuda", 127));
  }
  if (!good) {
    return refuse("invalid device.", "--device", value,
                  "auto, cpu, npu, npu:0 to npu:31, cuda, cuda:0 to cuda:126, host");
  }
  return join(items);
}

Result<std::string> check_analysis(std::string_view value, Notes& notes) {
  std::vector<std::string> items = split_list(value);
  for (std::string& item : items) {
    if (item.starts_with("oom")) {  // any word that begins so is taken as oom, as it always was
      const size_t colon = item.find(':');
      if (colon == std::string::npos) {
        item = "oom";
      } else {
        const std::string top = item.substr(colon + 1);
        const auto k = number(top);
        if (!k || *k < 1 || *k > 1000) {
          return Error{fmt::format(
              "invalid OOM top-K value '{}', valid range is [1, 1000]. --analysis is \"{}\"", top,
              value)};
        }
        item = "oom:" + top;
      }
    } else if (item != "leaks" && item != "decompose" && item != "inefficient" && item != "none") {
      items.clear();
      break;
    }
  }
  if (items.empty()) {
    return refuse("invalid analysis type input.", "--analysis", value,
                  "leaks, decompose, inefficient, oom, oom:1 to oom:1000, none");
  }
  if (contains(items, "none")) {
    if (items.size() > 1) {
      notes.warnings.emplace_back("'none' mixed with other analysis types, all analysis cleared.");
    }
    return std::string("none");
  }
  for (const std::string& item : items) {
    if (item != "leaks") notes.not_recorded.push_back(fmt::format("{} (--analysis)", item));
  }
  return join(items);
}

Result<std::string> check_watch(std::string_view value, Notes& notes) {
  // start[:outid],end[,full-content]; the first comma must be there, `start` may be empty.
  const auto refused = [&] {
    return refuse("invalid watch config.", "--watch", value,
                  "[START[:OUTPUT]],END[,full-content], names up to 254 characters");
  };
  std::string text(value);
  for (size_t at = text.find(kWideComma); at != std::string::npos; at = text.find(kWideComma)) {
    text.replace(at, kWideComma.size(), ",");
  }
  const size_t first = text.find(',');
  if (first == std::string::npos) return refused();
  const std::string start = text.substr(0, first);
  std::string end = text.substr(first + 1);
  const size_t second = end.find(',');
  if (second != std::string::npos) {
    if (end.substr(second + 1) != "full-content") return refused();
    end.resize(second);
  }
  if (end.empty() || end.size() > kMaxWatchName || start.size() > kMaxWatchName) return refused();
  const size_t colon = start.find(':');
  if (colon != std::string::npos) {
    const std::string output = start.substr(colon + 1);
    if (!number(output) || (output.size() > 1 && output.front() == '0')) return refused();
  }
  notes.not_recorded.emplace_back("watched operators (--watch)");
  return text;
}

Result<std::string> check_input_path(std::string_view value, Notes&) {
  const std::vector<std::string> paths = split_list(value);
  if (paths.size() != 2 || value.size() > kMaxPath) {
    return refuse("invalid paths input.", "--input-path", value, "two paths, up to 4096 bytes");
  }
  return join(paths);
}

Result<std::string> check_output_path(std::string_view value, Notes& notes) {
  if (value.find_first_not_of(' ') == std::string_view::npos) {
    notes.warnings.emplace_back("empty output path.");
    return std::string();
  }
  std::error_code error;
  const std::filesystem::path path(value);
  const bool usable = value.size() <= kMaxPath && (!std::filesystem::exists(path, error) ||
                                                   std::filesystem::is_directory(path, error));
  if (!usable) {
    return refuse("invalid output path. Please use correct output path!", "--output-path", value,
                  "a directory, there or to be made, up to 4096 bytes");
  }
  return std::filesystem::absolute(path, error).string();
}

Result<std::string> check_format(std::string_view value, Notes&) {
  if (value != "csv" && value != "db") {
    return refuse("--data-format param is invalid. DATA_FORMAT can only be set csv,db.", "--format",
                  value, "csv, db");
  }
  return std::string(value);
}

Result<std::string> check_log_level(std::string_view value, Notes& notes) {
  if (value == "warn") {
    notes.warnings.push_back(deprecation("warn", "warning"));
    return std::string("warning");
  }
  if (value != "debug" && value != "info" && value != "warning" && value != "error") {
    return refuse("--log-level param is invalid. Log level: debug|info|warning|error.",
                  "--log-level", value, "debug, info, warning, error");
  }
  return std::string(value);
}

Result<std::string> check_compat(std::string_view value, Notes&) {
  if (value != "26.0") return refuse("invalid compat version.", "--compat", value, "26.0");
  return std::string(value);
}

namespace {

// Bytes, with K, M, G or T after the number, each also with B or iB: 1024 to the power.
std::optional<uint64_t> size_in_bytes(std::string_view value) {
  const size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  const auto count = number(value.substr(0, digits));
  std::string unit(value.substr(digits));
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  if (unit.ends_with("B")) unit.pop_back();
  constexpr std::string_view kUnits = "KMGT", kSmall = "kmgt";
  uint64_t factor = 1;
  bool good = count.has_value() && *count > 0;
  if (!unit.empty()) {
    size_t power = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
    if (unit.size() == 1 && power == std::string_view::npos) power = kSmall.find(unit[0]);
    good = good && power != std::string_view::npos;
    if (good) factor = uint64_t{1024} << (10 * power);
  }
  if (!good || *count > UINT64_MAX / 2 / factor) return std::nullopt;
  return *count * factor;
}

}  // namespace

Result<std::string> check_host_sample(std::string_view value, Notes&) {
  constexpr uint64_t kLargest = uint64_t{1} << 30;
  const auto bytes = value == "0" ? std::optional<uint64_t>(0) : size_in_bytes(value);
  if (!bytes || *bytes > kLargest) {
    return refuse("invalid sampling distance.", "--host-sample", value,
                  "bytes, with K, M or G after the number, up to 1G; 0 = every block");
  }
  return std::to_string(*bytes);
}

Result<std::string> check_trace_size(std::string_view value, Notes&) {
  constexpr uint64_t kSmallest = uint64_t{16} << 20;
  const auto bytes = size_in_bytes(value);
  if (!bytes || *bytes < kSmallest) {
    return refuse("invalid trace size.", "--max-trace-size", value,
                  "bytes, with K, M, G or T after the number, 16M at least");
  }
  return std::to_string(*bytes);
}

Result<std::string> check_report_to(std::string_view value, Notes&) {
  if (value == "stderr" || value == "stdout" || value == "none") return std::string(value);
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(value, error);
  const bool directory = std::filesystem::is_directory(path, error);
  if (value.empty() || directory || !std::filesystem::is_directory(path.parent_path(), error)) {
    return refuse("invalid report target.", "--report-to", value,
                  "stderr, stdout, none, or a file in a directory that is there");
  }
  return path.string();
}

Result<std::string> check_readable_file(std::string_view value, Notes&) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(value, error);
  if (value.empty() || !std::filesystem::is_regular_file(path, error) ||
      ::access(path.c_str(), R_OK) != 0) {
    return refuse("invalid suppressions file.", "--suppressions", value, "a file that can be read");
  }
  return path.string();
}

std::string deprecation(std::string_view old_name, std::string_view new_name) {
  return fmt::format("[msmemscope] Deprecation: '{}' is deprecated, use '{}' instead.", old_name,
                     new_name);
}

}  // namespace memscope::cli
