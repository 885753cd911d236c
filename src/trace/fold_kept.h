// Which cold records of the folded past stay, see fold_log.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "trace/lane_cursor.h"
#include "trace/record_table.h"

namespace memscope {

class FoldKept {
 public:
  struct Entry {
    uint64_t ticks = 0;
    std::vector<uint64_t> words;
  };
  // Records of these kinds are wanted from any lane.
  static constexpr uint64_t kKinds =
      kind_bit(Kind::kProcess) | kind_bit(Kind::kAnchor) | kind_bit(Kind::kWindow) |
      kind_bit(Kind::kGap) | kind_bit(Kind::kDrop) | kind_bit(Kind::kNotice) |
      kind_bit(Kind::kConfig) | kind_bit(Kind::kSource) | kind_bit(Kind::kModule) |
      kind_bit(Kind::kChild) | kind_bit(Kind::kCounter) | kind_bit(Kind::kSegment) |
      kind_bit(Kind::kPoolSnapshot) | kind_bit(Kind::kOom) | kind_bit(Kind::kCensus) |
      kind_bit(Kind::kSmaps);
  static constexpr uint64_t kStepKinds = kind_bit(Kind::kStep) | kind_bit(Kind::kMark);

  // What is kept spans [first, last] ticks.
  FoldKept(uint64_t first, uint64_t last, bool keep_steps);

  uint64_t kinds() const { return kinds_; }
  void add(uint64_t ticks, std::span<const uint64_t> words);
  // In order of their ticks.
  std::vector<Entry> take();

 private:
  // More of one kind than this is nothing that anybody reads.
  static constexpr size_t kMostOfAKind = 10'000;
  static constexpr uint64_t kParts = 512;
  using Key = std::tuple<uint8_t, std::string, uint64_t, uint64_t>;  // kind, name, where, part

  void keep(uint64_t ticks, std::span<const uint64_t> words);
  void sample(uint64_t ticks, std::span<const uint64_t> words, std::string name, uint64_t where,
              int64_t value);

  uint64_t first_, last_, part_, kinds_;
  std::vector<Entry> kept_;
  std::map<uint8_t, size_t> count_;
  struct Sample {
    Entry entry;
    int64_t value = 0;
  };
  std::map<Key, Sample> samples_;
  std::vector<Entry> segments_;  // of all lanes, in no order
  struct Dropped {
    uint64_t count = 0, bytes = 0;
  };
  std::map<uint64_t, Dropped> dropped_;  // by record kind
};

}  // namespace memscope
