// The items of a snapshot's long lists -> rows of a SnapshotFile, each as soon as it is whole.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "import/snapshot_file.h"
#include "import/snapshot_frames.h"
#include "import/values.h"
#include "tsl/robin_map.h"

namespace memscope {

class SnapshotItems : public ItemSink {
 public:
  explicit SnapshotItems(SnapshotFile& file)
      : file_(file), frames_(file.strings, file.stacks), stream_index_{{0, 0}} {}

  uint8_t child_role(uint8_t parent, std::string_view key, ValueKind kind) override;
  bool streams(uint8_t role, ValueKind kind) const override;
  bool holds_lists(uint8_t role) const override;
  bool item(Values& values, uint8_t role, uint64_t list, Value item) override;

  // Once the file is read: which list is which device's, and the settings.
  bool finish(Values& values, Value root);

 private:
  enum class Key : uint8_t;
  // A dict's item: which key, and its value.
  struct Pair {
    Key key;
    Value value;
  };
  Key key_of(const Values& values, Value text);
  void read_pairs(Values& values, Value dict);

  bool entry(Values& values, uint64_t list, Value item);
  bool segment(Values& values, Value item);
  bool host_segment(Values& values, Value item);
  void blocks(Values& values, Value list, PoolSegment& segment, PoolHistory& device);
  void block(Values& values, Value dict, const PoolSegment& segment, uint64_t& at);
  bool annotation(Values& values, Value item);
  void settings(const Values& values, Value dict);
  void setting(const Values& values, const std::string& name, Value value, int depth);

  void take(PoolHistory history);
  uint16_t stream_of(uint64_t stream);
  uint16_t pool_of(const Values& values, Value value);
  StringId string_of(const Values& values, Value text);
  PoolHistory& device_of(uint64_t index);

  struct Trace {
    uint64_t list = 0;
    std::deque<PoolEntry> entries;
  };
  SnapshotFile& file_;
  SnapshotFrames frames_;
  std::vector<uint8_t> keys_;  // Key by StringId of the values' texts
  std::vector<Pair> pairs_;    // of the dict at hand
  std::deque<Trace> traces_;
  tsl::robin_map<uint64_t, uint16_t> stream_index_;
  PoolBlock block_;  // the one that block() read
  bool block_used_ = false;
  uint64_t odd_segments_ = 0;  // whose sums are not those of their blocks
  std::deque<std::pair<uint64_t, PoolHistory>> devices_;  // by index
  PoolHistory host_;
  std::vector<StringId> strings_;  // of the file, by StringId of the values' texts
};

}  // namespace memscope
