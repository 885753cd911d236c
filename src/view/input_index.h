// Everything the viewer knows of one input: its pools' columns, and the tables beside them.
//
// Times are ns since `origin`. Immutable once built, but for the frames' descriptions, which are
// made when first asked for. Native frames are "object+0xoffset" until take_names() or named().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/site.h"
#include "core/result.h"
#include "core/stacks.h"
#include "replay/side_records.h"
#include "replay/steps.h"
#include "trace/lane_tables.h"
#include "view/pool_index.h"

namespace memscope::view {

class NameTable;

struct PhaseSeen {
  uint64_t time = 0;
  uint32_t phase = 0;   // 0 other 1 forward 2 backward 3 optimizer
  uint32_t module = 0;  // index into InputIndex::names
};

struct MarkSeen {
  static constexpr uint64_t kMoment = ~uint64_t{0};
  uint64_t begin = 0, end = kMoment;
  uint32_t text = 0, domain = 0;  // indices into InputIndex::names
};

struct CounterSeen {
  std::string name;
  Where where;
  std::vector<uint64_t> times;
  std::vector<int64_t> values;
};

struct OomSeen {
  uint64_t time = 0, size = 0, allocated = 0, reserved = 0;
  Where where;
  uint32_t stack = 0;
};

struct Span {
  uint64_t begin = 0, end = 0;
};

// What is known of the input as a whole; as `analyze --json` has it.
struct InputFacts {
  std::string path, name, kind = "trace", ended = "unknown", command;
  std::optional<ProcessSeen> process;
  bool complete = true;
  uint64_t dropped = 0;
  uint32_t part = 0, parts = 1;  // of the processes in one file
};

// What an index holds beside its stacks, and what does not change when frames get their names.
struct InputTables {
  InputFacts facts;
  uint64_t origin = 0;          // ns since the epoch
  uint64_t begin = 0, end = 0;  // of what is shown
  std::vector<std::shared_ptr<PoolIndex>> pools;

  std::vector<ThreadEntry> threads{{}};
  std::vector<std::string> owners{""};
  std::vector<uint32_t> used_stacks;   // in the order in which blocks first had them
  std::vector<std::string> names{""};  // of marks and phases

  StepPlan steps;  // times since `origin`
  std::vector<PhaseSeen> phases;
  std::vector<MarkSeen> marks;
  std::vector<CounterSeen> counters;
  std::vector<OomSeen> ooms;
  std::vector<Span> windows;
  SideRecords side;  // gaps and holders' births since the epoch
  std::vector<std::string> damage;
  uint64_t left_out = 0;  // records that did not fit the lists above
  uint64_t unknown_frees = 0, ambiguous = 0;
};

class InputIndex : public InputTables {
 public:
  InputIndex() = default;
  InputIndex(const InputIndex&) = delete;
  InputIndex& operator=(const InputIndex&) = delete;

  StringTable strings;
  StackTable stacks;

  // After the tables are there: finds the site of every stack.
  void make_sites();
  // The same once more, native frames by these names: other sites, the same stacks, blocks and
  // events. Only before anybody else has the index.
  void take_names(std::shared_ptr<const NameTable> names);
  // A copy with these names; it shares the pools.
  std::shared_ptr<InputIndex> named(std::shared_ptr<const NameTable> names) const;
  // Those of a native frame, calls inlined there included.
  std::span<const SourceFrame> names_of(const Frame& frame) const {
    return names_ == nullptr ? std::span<const SourceFrame>() : names_->find(frame);
  }
  // Null where it has none.
  const NameTable* frame_names() const { return table_.get(); }
  uint32_t site_count() const { return static_cast<uint32_t>(site_frames_.size()); }
  uint32_t site_of_stack(uint32_t stack) const {
    return stack < stack_site_.size() ? stack_site_[stack] : 0;
  }
  // Site 0 is "no code line".
  const SiteFrame& site(uint32_t site) const { return site_frames_[site]; }
  const std::string& site_place(uint32_t site) const { return site_places_[site]; }  // "train.py:9"

  std::vector<SiteFrame> describe_stack(uint32_t stack, size_t most) const;
  SiteFrame describe_frame(FrameId frame) const;
  std::string thread_name(uint32_t thread) const;

  // The step a moment lies in: 0 before the first, count() + 1 after the last.
  uint32_t step_at(uint64_t time) const;

 private:
  std::vector<uint32_t> stack_site_;
  std::vector<SiteFrame> site_frames_;
  std::vector<std::string> site_places_;
  mutable std::mutex mutex_;  // of sites_
  std::shared_ptr<const NameTable> table_;
  std::unique_ptr<FrameNames> names_;  // outlives sites_
  mutable std::unique_ptr<Sites> sites_;
};

// "train.py:99": the last part of the path and the line; "libfoo.so" of a native frame without a
// line; "(no code line)" for none.
std::string short_place(const SiteFrame& frame);

}  // namespace memscope::view
