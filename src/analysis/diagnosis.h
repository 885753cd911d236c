// What an analysis finds, as plain structs: the in-memory form of `analyze --json` (the contract's
// section 3; docs/analyze.schema.json). Bytes are integers, times are ns since the epoch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace memscope {

using EvidenceValue = std::variant<bool, int64_t, double, std::string, std::vector<double>>;

struct SiteFrame {
  std::optional<std::string> file;  // absolute path
  std::optional<int64_t> line, end_line;
  std::string function;
  std::optional<std::string> module;
  bool native = false;
  bool user = false;
  bool inferred = false;            // the source may have changed since it was loaded
  std::optional<std::string> text;  // the statement, one line, trimmed
  friend bool operator==(const SiteFrame&, const SiteFrame&) = default;
};

struct SiteShare {
  SiteFrame site;
  int64_t bytes = 0;
  int64_t blocks = 0;
};

struct HolderStep {
  std::string kind;  // global local attr item cell ref
  std::string name, type;
  std::optional<int64_t> len;
};

struct Holder {
  std::string root;  // module frame thread class traceback closure hook autograd c++
  std::vector<HolderStep> path;
  int64_t blocks = 0, bytes = 0;
  std::string text;  // readable: "__main__.leak_store[412]"
};

// The live blocks of one line under suspicion, for the glue's walk over Python objects. Lines too
// small for a verdict are among them: they may tell whose the others are.
struct SuspectBlock {
  uint64_t addr = 0;
  uint64_t size = 0;
  uint64_t birth = 0;  // ns since the epoch
};
struct SuspectGroup {
  std::optional<SiteFrame> site;
  std::vector<SiteFrame> stack;  // innermost first
  std::vector<SuspectBlock> blocks;
};

struct Verdict {
  std::string id;
  std::string cause;  // the contract's table
  std::optional<std::string> layer, device;
  std::vector<int64_t> processes;  // indices into Diagnosis::inputs
  double confidence = 0;
  int64_t bytes_total = 0;
  std::optional<double> bytes_per_step, bytes_per_second;
  int64_t blocks = 0;
  std::optional<int64_t> first_step, last_step;
  std::optional<SiteFrame> site, kept_at;
  std::vector<SiteShare> sites;  // <= 10, largest first
  std::vector<SiteFrame> stack;  // innermost first
  std::vector<Holder> holders;
  std::optional<std::string> owner;
  std::map<std::string, EvidenceValue> evidence;
  std::string advice;
};

struct Peaks {
  int64_t start = 0, peak = 0, end = 0;
};

struct LayerSummary {
  int64_t input = 0;
  std::string device, layer;
  Peaks allocated;
  std::optional<Peaks> reserved;
  std::optional<double> bytes_per_step;
  // Not in the JSON, whose verdicts say it: bytes between two samples where the layer is sampled
  // (0: it is not), and how far off its figures may be (95 %).
  int64_t sampled_every = 0, peak_error = 0, end_error = 0;
};

struct InputSummary {
  std::string path;
  std::string kind = "trace";  // trace csv db snapshot
  struct Process {
    std::string host;
    std::optional<int64_t> rank;
    int64_t pid = 0;
    std::string argv0;
    std::string command;  // argv, space-joined; not in the JSON
  };
  std::optional<Process> process;
  std::string ended = "unknown";  // stop exit killed running unknown
  bool complete = true;
  int64_t dropped = 0;
  std::optional<std::string> agent;
};

struct GapSummary {
  int64_t input = 0;
  uint64_t from_ns = 0, to_ns = 0;
  std::string reason;
};

struct StepSummary {
  std::string source = "none";  // api mstx optimizer time none
  int64_t count = 0;
  std::optional<int64_t> first, last, warmup_until;
};

struct Diagnosis {
  std::string tool;  // "msmemscope <version>"
  std::vector<InputSummary> inputs;
  std::vector<std::string> devices;
  StepSummary steps;
  std::vector<LayerSummary> layers;
  int64_t dropped_events = 0, ambiguous = 0;
  std::vector<GapSummary> gaps;
  std::vector<Verdict> verdicts, suspects, suppressed;
  std::vector<SuspectGroup> suspect_groups;  // most telling first; not in the JSON
};

}  // namespace memscope
