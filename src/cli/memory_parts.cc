#include "cli/memory_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/format.h"
#include "report/paint.h"
#include "report/text.h"
#include "trace/reader.h"
#include "trace/records.h"

namespace memscope::cli {
namespace {

constexpr size_t kProcesses = 4;  // shown
constexpr size_t kLabel = 16;

// Of the end, in one layer of one input, all devices together.
int64_t alive(const Diagnosis& diagnosis, int64_t input, std::string_view layer) {
  int64_t bytes = 0;
  for (const LayerSummary& row : diagnosis.layers) {
    if (row.input == input && row.layer == layer) bytes += row.allocated.end;
  }
  return bytes;
}

int64_t host_error(const Diagnosis& diagnosis, int64_t input) {
  int64_t error = 0;
  for (const LayerSummary& row : diagnosis.layers) {
    if (row.input == input) error = std::max(error, row.end_error);
  }
  return error;
}

std::string parts_of_rss(const MemoryParts& parts) {
  std::string text;
  for (const auto& [name, word] :
       {std::pair{"rss.anonymous", "anonymous"}, std::pair{"rss.file", "files"},
        std::pair{"rss.shmem", "shared"}}) {
    const auto bytes = parts.value(name);
    if (bytes) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, format_bytes(*bytes));
  }
  return text;
}

std::string control_group(const MemoryParts& parts) {
  const auto used = parts.value("cgroup.current"), limit = parts.value("cgroup.limit");
  if (!used) return "";
  return format_bytes(*used) + (limit ? " of " + format_bytes(*limit) : ", without a limit");
}

}  // namespace

std::optional<int64_t> MemoryParts::value(std::string_view name) const {
  const auto found = last.find(name);
  return found == last.end() ? std::nullopt : std::optional(found->second);
}

std::optional<MemoryParts> read_memory_parts(const std::string& path) {
  auto opened = TraceReader::open(path);
  if (!opened) return std::nullopt;
  constexpr size_t kNames = 64;  // of a damaged trace there may be any number
  MemoryParts parts;
  opened.value().scan(kind_bit(Kind::kCounter), [&](const Event& event) {
    const auto counter = decode_record<CounterRecord>(event.words);
    if (!counter || Where::unpack(static_cast<uint16_t>(counter->where)).layer != Layer::kHost) {
      return true;
    }
    const auto known = parts.last.find(counter->name);
    if (known != parts.last.end()) {
      known->second = counter->value;
    } else if (parts.last.size() < kNames) {
      parts.last.emplace(counter->name, counter->value);
    }
    if (counter->name == "rss") parts.peak_rss = std::max(parts.peak_rss, counter->value);
    return true;
  });
  if (!parts.value("rss")) return std::nullopt;
  return parts;
}

std::string memory_parts_line(const MemoryParts& parts) {
  const std::string of = parts_of_rss(parts), group = control_group(parts);
  std::string text = fmt::format("{} resident at the end (peak {})",
                                 format_bytes(*parts.value("rss")), format_bytes(parts.peak_rss));
  if (!of.empty()) text += ": " + of;
  if (const auto swap = parts.value("swap"); swap && *swap != 0) {
    text += "; swapped out " + format_bytes(*swap);
  }
  if (!group.empty()) text += "; control group " + group;
  return text;
}

std::vector<MemoryPartsRow> memory_parts_rows(const MemoryParts& parts, int64_t host,
                                              int64_t tensors, int64_t host_error) {
  std::vector<MemoryPartsRow> rows;
  rows.push_back(
      {"resident", fmt::format("{} at the end, peak {}: {}", format_bytes(*parts.value("rss")),
                               format_bytes(parts.peak_rss), parts_of_rss(parts))});
  if (const auto anonymous = parts.value("rss.anonymous")) {
    std::string text = "malloc and mmap " + format_bytes(host);
    if (host_error != 0) text += " +- " + format_bytes(host_error) + ", sampled";
    if (tensors != 0) text += fmt::format(" (tensors {} of it)", format_bytes(tensors));
    const int64_t rest = *anonymous - host;
    text += rest >= 0
                ? fmt::format(
                      "; {} else: free lists, stacks, the agent's tables, what was there "
                      "before the recording",
                      format_bytes(rest))
                : fmt::format("; {} of it never touched, or swapped out", format_bytes(-rest));
    rows.push_back({"anonymous", text});
  }
  const auto slab = parts.value("agent.slab");
  if (slab && *slab != 0) {
    rows.push_back({"files, shared", format_bytes(*slab) + " of it are the agent's own slab"});
  }
  if (const auto swap = parts.value("swap"); swap && *swap != 0) {
    rows.push_back({"swapped out", format_bytes(*swap)});
  }
  if (const std::string group = control_group(parts); !group.empty()) {
    rows.push_back({"control group", group});
  }
  return rows;
}

std::string memory_parts_text(const Diagnosis& diagnosis, const TerminalStyle& style) {
  const Paint paint(style);
  std::string out;
  size_t shown = 0;
  for (size_t input = 0; input < diagnosis.inputs.size() && shown < kProcesses; ++input) {
    const InputSummary& summary = diagnosis.inputs[input];
    if (summary.kind != "trace") continue;
    const auto parts = read_memory_parts(summary.path);
    if (!parts) continue;
    ++shown;
    std::string head = "what its resident memory is made of";
    if (diagnosis.inputs.size() > 1 && summary.process) {
      head += fmt::format(" (pid {})", summary.process->pid);
    }
    out += "\n" + paint.label(head) + "\n";
    const auto index = static_cast<int64_t>(input);
    for (const MemoryPartsRow& row :
         memory_parts_rows(*parts, alive(diagnosis, index, "host"),
                           alive(diagnosis, index, "tensor"), host_error(diagnosis, index))) {
      std::string label = "  " + row.label;
      for (const std::string& line : wrap(row.text, style.width - kLabel)) {
        label.resize(kLabel, ' ');
        out += paint.label(label) + line + "\n";
        label.clear();
      }
    }
  }
  return out;
}

}  // namespace memscope::cli
