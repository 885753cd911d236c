// A lane numbers its strings, frames and stacks itself; here they become entries of the process's
// tables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/stacks.h"
#include "trace/damage.h"
#include "tsl/robin_map.h"

namespace memscope {

// A thread that recorded something; entry 0 of ProcessTables::threads is the agent's own.
struct ThreadEntry {
  uint64_t tid = 0;
  std::string name;
};

// What all lanes of a process share.
struct ProcessTables {
  StringTable strings;
  StackTable stacks;
  std::vector<ThreadEntry> threads{{}};
  uint64_t text_bytes = 0;  // interned so far, see kMaxTextBytes

  // A text past these limits is damage: the agent's own tables are smaller.
  static constexpr size_t kMaxText = 64 * 1024;
  static constexpr uint64_t kMaxTextBytes = 256u << 20;
  static constexpr size_t kMaxThreads = 1u << 20;
  StringId intern(std::string_view text);
  ThreadId thread(uint64_t tid, std::string_view name);

 private:
  tsl::robin_map<uint64_t, uint32_t> last_of_tid_;
};

// Ids 1, 2, 3, ... in order are looked up by index; others, which only damage brings, are not worth
// more than a map.
class IdMap {
 public:
  IdMap() : dense_{0} {}
  void set(uint64_t id, uint32_t value) {
    if (id == dense_.size()) {
      dense_.push_back(value);
    } else if (id < dense_.size()) {
      dense_[id] = value;
    } else {
      sparse_[id] = value;
    }
  }
  uint32_t get(uint64_t id) const {
    if (id < dense_.size()) return dense_[id];
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? 0 : found->second;
  }
  void clear() {
    dense_.assign(1, 0);
    sparse_.clear();
  }

 private:
  std::vector<uint32_t> dense_;
  tsl::robin_map<uint64_t, uint32_t> sparse_;
};

class LaneTables {
 public:
  // Takes a record of kind lane, string, frame or stack; false where it is damaged.
  bool define(std::span<const uint64_t> words, ProcessTables& process);
  StackId stack(uint64_t id) const { return StackId(stacks_.get(id)); }
  ThreadId thread() const { return thread_; }

 private:
  IdMap strings_, frames_, stacks_;
  ThreadId thread_;
};

}  // namespace memscope
