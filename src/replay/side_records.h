// What a trace tells beside its blocks: who was traced, settings, sources, holders, what was lost.
// Each list is bounded; what does not fit is counted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.h"
#include "replay/recording_windows.h"

namespace memscope {

// Who keeps a block alive, as the object walk found it.
struct HolderSeen {
  uint64_t addr = 0;
  uint64_t birth = 0;  // of the block, ns since the epoch, as its alloc's time
  uint32_t group = 0;
  uint64_t size = 0;
  std::string root, path, file, function, text, cause;
  uint64_t line = 0, end_line = 0;
};

// What a block is for: levels joined by "@", and what the user calls it. Either may be "".
struct BlockOwner {
  std::string owner, label;
  friend auto operator<=>(const BlockOwner&, const BlockOwner&) = default;
};

struct SourceText {
  static constexpr uint64_t kNewer = 1, kStatementsOnly = 2, kTruncated = 4;
  std::string text;
  uint64_t flags = 0;
};

struct GapSeen {
  uint64_t from = 0, to = 0;  // ns since the epoch
  std::string reason;
  bool healed = false;  // stop() to start(): the seeds tell what survived
};

struct ProcessSeen {
  std::string host, argv0, agent;
  int64_t pid = 0, rank = -1;
};

struct SideRecords {
  static constexpr size_t kMaxHolders = 100'000, kMaxTexts = 10'000;
  static constexpr size_t kMaxSourceBytes = 64u << 20;

  std::optional<ProcessSeen> process;
  std::vector<HolderSeen> holders;
  std::vector<BlockOwner> owners{1};                       // by Block::owner; [0]: not told
  std::map<std::string, SourceText, std::less<>> sources;  // the first text of each path
  std::multimap<std::string, std::string, std::less<>> config;
  // Of object files without a build-id, when each was changed, ns since the epoch; 0: it was loaded
  // in several states.
  std::map<std::string, uint64_t, std::less<>> unnamed_modules;
  std::vector<GapSeen> gaps;
  uint64_t dropped = 0, dropped_frees = 0;
  uint64_t left_out = 0;          // records that did not fit these lists
  std::string ended = "unknown";  // stop exit unknown
  size_t source_bytes = 0;

  using TimeOf = std::function<uint64_t(uint64_t ticks)>;
  // Takes a kRecord event of a kind that concerns no block; others are ignored.
  void add(const Event& event, const TimeOf& time_of);
  // Takes a kWindow event.
  void window(const Event& event, WindowChange change);
};

}  // namespace memscope
