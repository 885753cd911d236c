// What the object walk found out about the blocks of one suspect: holders summed by container.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/diagnosis.h"
#include "replay/side_records.h"

namespace memscope {

// The path of a holder record's JSON; empty where it is damaged.
std::vector<HolderStep> parse_holder_path(std::string_view json);
// Without what tells one element of a container from another: the steps after the last that is
// not an item or a reference.
std::vector<HolderStep> container_of(std::vector<HolderStep> path);

class HolderSums {
 public:
  struct KeptAt {
    std::string file, function;
    uint64_t line = 0, end_line = 0;
    uint64_t blocks = 0;
  };

  void add(const HolderSeen& seen);
  void add(const HolderSums& other);

  bool empty() const { return sums_.empty(); }
  uint64_t blocks() const { return blocks_; }
  // The same text for the same container in every process; "" where none holds the majority.
  std::string majority_container() const;
  std::optional<KeptAt> majority_kept_at() const;
  // A cause the walk proves for the majority, "" none. "none" itself: what holds them is bounded.
  std::string majority_cause() const;
  // Blocks that a graph keeps, and those that keep a graph.
  uint64_t in_graph() const { return in_graph_; }
  uint64_t roots() const { return roots_; }
  // The name the container is known by in the program, "" none: "leak_store".
  std::string container_name() const;
  // Largest first, at most `most`.
  std::vector<Holder> list(size_t most) const;

 private:
  std::map<std::string, Holder> sums_;  // by container
  std::map<std::string, KeptAt> kept_at_;
  std::map<std::string, uint64_t> causes_;
  uint64_t blocks_ = 0, in_graph_ = 0, roots_ = 0;
};

}  // namespace memscope
