// HOT PATH: Sweep.
#include "view/graph.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

#include "view/block_tree.h"
#include "view/graph_slices.h"

namespace memscope::view {
namespace {

// What is merged in one attempt.
struct Limits {
  double least = 1;   // pixels: lower bands are never items of their own
  uint32_t wide = 0;  // bands narrower (in slices) ...
  double high = 0;    // ... and lower than these are merged, too
};

uint64_t whole(double bytes) {
  return static_cast<uint64_t>(std::min(bytes, 1e18));
}

// Draws a run of slices with a tree of its own.
class Sweep {
 public:
  Sweep(const PoolIndex& pool, const BlockOrder& order, const Colouring& colouring,
        const GraphQuery& query, const Limits& limits, Graph& graph)
      : pool_(pool),
        order_(order),
        colouring_(colouring),
        query_(query),
        limits_(limits),
        graph_(graph),
        tree_(pool.blocks() + 1, static_cast<uint32_t>(colouring.classes.size())),
        pixel_(static_cast<double>(query.m1 - query.m0) / std::max(query.height, 1u)),
        least_(whole(std::max(1.0, limits.least * pixel_))),
        high_(whole(limits.high * pixel_)) {}

  // Slices from..to-1. False where the items would be more than `most`.
  bool run(size_t from, size_t to, std::atomic<size_t>& used, size_t most) {
    start(from);
    for (size_t slice = from; slice < to; ++slice) {
      if (slice != from) advance(graph_.slices[slice - 1].state, slice);
      const size_t before = items_.size();
      walk(graph_.slices[slice]);
      if (used.fetch_add(items_.size() - before) + (items_.size() - before) > most) return false;
    }
    return true;
  }
  std::vector<GraphItem>& items() { return items_; }

 private:
  bool large(uint64_t size, uint32_t block, size_t slice) const {
    if (size < least_) return false;
    if (limits_.wide == 0 || size >= high_) return true;
    // Still there `wide` slices on: wide enough to be seen.
    const size_t until = std::min(slice + limits_.wide - 1, graph_.slices.size() - 1);
    return pool_.free_event[block] >= graph_.slices[until].state;
  }
  void add(uint32_t block, size_t slice) {
    const uint8_t in = colouring_.of_block[block];
    if ((query_.classes >> in & 1) == 0) return;
    const uint64_t size = pool_.size(block);
    tree_.add(order_.rank(block), size, in, large(size, block, slice));
  }

  void start(size_t slice) {
    const uint32_t state = graph_.slices[slice].state;
    const uint32_t blocks = pool_.blocks_in(state);
    const uint32_t* free_event = pool_.free_event.data();
    for (uint32_t block = 1; block <= blocks; ++block) {
      if (free_event[block] >= state) add(block, slice);
    }
  }

  // From state `from` to that of `slice`: blocks that lived in between only cost next to nothing.
  void advance(uint32_t from, size_t slice) {
    const uint32_t to = graph_.slices[slice].state;
    const uint32_t* event = pool_.event.data();
    const uint32_t* free_event = pool_.free_event.data();
    const uint32_t* ranks = order_.ranks();
    const uint32_t count = pool_.events();
    constexpr uint32_t kAhead = 16;
    for (uint32_t at = from; at < to; ++at) {
      if (at + kAhead < count && ranks != nullptr) {
        __builtin_prefetch(ranks + (event[at + kAhead] & ~kFreeBit));
      }
      const uint32_t word = event[at];
      const uint32_t block = word & ~kFreeBit;
      if ((word & kFreeBit) == 0) {
        if (free_event[block] >= to) add(block, slice);
        continue;
      }
      const uint32_t place = order_.rank(block);
      if (!tree_.live(place)) continue;
      tree_.remove(place, pool_.size(block), colouring_.of_block[block]);
    }
  }

  // -- one slice, bottom to top --
  void walk(GraphSlice& slice) {
    slice.first = items_.size();
    slice.total = tree_.total();
    y_ = 0;
    started_ = false;
    slice_ = &slice;
    clear_gap();
    const auto top = static_cast<uint32_t>(tree_.nodes(BlockTree::kLevels - 1).size());
    for (uint32_t node = 0; node < top; ++node) {
      if (!visit(BlockTree::kLevels - 1, node)) break;
    }
    flush_gap();
    if (!started_) slice.base = std::min(y_, slice.total);
  }

  // False once the window's upper edge is reached.
  bool visit(int level, uint32_t at) {
    const BlockTree::Node& node = tree_.nodes(level)[at];
    if (node.bytes == 0) return true;
    if (y_ >= query_.m1) return false;
    if (y_ + node.bytes <= query_.m0) {
      y_ += node.bytes;
      return true;
    }
    if (node.large == 0) {
      begin_item();
      const uint64_t* by_class = tree_.by_class(level, at);
      for (uint32_t left = node.classes; left != 0; left &= left - 1) {
        const auto in = static_cast<uint32_t>(std::countr_zero(left));
        gap_[in] += by_class[in];
      }
      gap_classes_ |= node.classes;
      gap_bytes_ += node.bytes;
      y_ += node.bytes;
      return true;
    }
    constexpr uint32_t kFan = 1u << BlockTree::kFanBits;
    const size_t below = level == 1 ? tree_.leaves().size() : tree_.nodes(level - 1).size();
    const auto end = static_cast<uint32_t>(std::min<size_t>(below, size_t{at + 1} * kFan));
    for (uint32_t child = at * kFan; child < end; ++child) {
      if (!(level == 1 ? visit_leaf(child) : visit(level - 1, child))) return false;
    }
    return true;
  }

  bool visit_leaf(uint32_t at) {
    const BlockTree::Leaf& leaf = tree_.leaves()[at];
    if (leaf.bytes == 0) return true;
    if (y_ >= query_.m1) return false;
    if (y_ + leaf.bytes <= query_.m0) {
      y_ += leaf.bytes;
      return true;
    }
    for (uint64_t left = leaf.live; left != 0; left &= left - 1) {
      const auto bit = static_cast<uint32_t>(std::countr_zero(left));
      const uint32_t block = order_.block((at << BlockTree::kLeafBits) + bit);
      const uint64_t size = pool_.size(block);
      if (y_ >= query_.m1) return false;
      if (y_ + size <= query_.m0) {
        y_ += size;
        continue;
      }
      const uint8_t in = colouring_.of_block[block];
      if ((leaf.large >> bit & 1) != 0) {
        flush_gap();
        begin_item();
        items_.push_back({size, block, in});
      } else {
        begin_item();
        gap_[in] += size;
        gap_classes_ |= 1u << in;
        gap_bytes_ += size;
      }
      y_ += size;
    }
    return true;
  }

  void begin_item() {
    if (started_) return;
    started_ = true;
    slice_->base = y_;
  }

  void clear_gap() {
    for (uint32_t left = gap_classes_; left != 0; left &= left - 1) {
      gap_[static_cast<size_t>(std::countr_zero(left))] = 0;
    }
    gap_classes_ = 0;
    gap_bytes_ = 0;
  }

  // What lies between two large blocks: a band for each class, in the classes' order; those too
  // thin to be seen go to the largest.
  void flush_gap() {
    if (gap_bytes_ == 0) return clear_gap();
    uint32_t largest = 0;
    for (uint32_t left = gap_classes_; left != 0; left &= left - 1) {
      const auto in = static_cast<uint32_t>(std::countr_zero(left));
      if (gap_[in] > gap_[largest] || gap_[largest] == 0) largest = in;
    }
    const bool low = static_cast<double>(gap_bytes_) < pixel_;
    const auto thin = static_cast<uint64_t>(pixel_ / 2);
    uint64_t rest = gap_bytes_;
    for (uint32_t left = gap_classes_; left != 0; left &= left - 1) {
      const auto in = static_cast<uint32_t>(std::countr_zero(left));
      if (in != largest && !low && gap_[in] >= thin) rest -= gap_[in];
    }
    for (uint32_t left = gap_classes_; left != 0; left &= left - 1) {
      const auto in = static_cast<uint32_t>(std::countr_zero(left));
      if (in == largest) {
        items_.push_back({rest, kMerged, static_cast<uint8_t>(in)});
      } else if (!low && gap_[in] >= thin && gap_[in] != 0) {
        items_.push_back({gap_[in], kMerged, static_cast<uint8_t>(in)});
      }
    }
    clear_gap();
  }

  const PoolIndex& pool_;
  const BlockOrder& order_;
  const Colouring& colouring_;
  const GraphQuery& query_;
  const Limits& limits_;
  Graph& graph_;
  BlockTree tree_;
  double pixel_;           // bytes
  uint64_t least_, high_;  // bytes
  std::vector<GraphItem> items_;

  GraphSlice* slice_ = nullptr;
  uint64_t y_ = 0;
  bool started_ = false;
  std::array<uint64_t, kMaxClasses> gap_{};
  uint32_t gap_classes_ = 0;
  uint64_t gap_bytes_ = 0;
};

// Where to cut the slices so that both runs have as many events.
size_t middle(const Graph& graph) {
  const auto& slices = graph.slices;
  const uint64_t half = (uint64_t{slices.front().state} + slices.back().state) / 2;
  const auto at =
      std::lower_bound(slices.begin(), slices.end(), half,
                       [](const GraphSlice& slice, uint64_t state) { return slice.state < state; });
  return std::clamp<size_t>(static_cast<size_t>(at - slices.begin()), 1, slices.size() - 1);
}

bool draw(const PoolIndex& pool, const BlockOrder& order, const Colouring& colouring,
          const GraphQuery& query, const Limits& limits, size_t most, Graph& graph) {
  constexpr uint32_t kWorthAThread = 500'000;  // events
  std::atomic<size_t> used = 0;
  const size_t count = graph.slices.size();
  Sweep first(pool, order, colouring, query, limits, graph);
  if (count < 16 || graph.slices.back().state - graph.slices.front().state < kWorthAThread) {
    if (!first.run(0, count, used, most)) return false;
    graph.items = std::move(first.items());
    return true;
  }
  const size_t cut = middle(graph);
  Sweep second(pool, order, colouring, query, limits, graph);
  bool second_done = false;
  std::thread other([&] { second_done = second.run(cut, count, used, most); });
  const bool first_done = first.run(0, cut, used, most);
  other.join();
  if (!first_done || !second_done) return false;
  graph.items = std::move(first.items());
  const size_t shift = graph.items.size();
  for (size_t slice = cut; slice < count; ++slice) graph.slices[slice].first += shift;
  graph.items.insert(graph.items.end(), second.items().begin(), second.items().end());
  return true;
}

uint32_t count_blocks(const Graph& graph) {
  std::vector<uint32_t> blocks;
  uint32_t last = kMerged;
  for (const GraphItem& item : graph.items) {
    if (item.block == kMerged || item.block == last) continue;
    blocks.push_back(last = item.block);
  }
  std::sort(blocks.begin(), blocks.end());
  return static_cast<uint32_t>(std::unique(blocks.begin(), blocks.end()) - blocks.begin());
}

}  // namespace

Graph draw_graph(const PoolIndex& pool, const BlockOrder& order, const Colouring& colouring,
                 const GraphQuery& query) {
  Graph graph;
  graph.classes = static_cast<uint32_t>(colouring.classes.size());
  choose_slices(pool, query, graph);
  constexpr std::array<Limits, 6> kAttempts = {
      {{1, 0, 0}, {1, 3, 4}, {1, 3, 16}, {2, 8, 64}, {8, 64, 256}, {1e18, 0, 0}}};
  size_t attempt = query.tidy ? 1 : 0;
  const size_t wanted = attempt;
  while (!draw(pool, order, colouring, query, kAttempts[attempt], Graph::kMaxItems, graph)) {
    if (attempt + 1 == kAttempts.size()) break;  // a band for each class: always fits
    ++attempt;
  }
  graph.cut = attempt != wanted;
  graph.merge_width = static_cast<float>(kAttempts[attempt].wide);
  graph.merge_height = static_cast<float>(kAttempts[attempt].high);
  graph.blocks = count_blocks(graph);
  return graph;
}

Located locate(const PoolIndex& pool, const BlockOrder& order, const Colouring* colouring,
               uint32_t classes, uint32_t state, uint64_t bytes) {
  // Sums of 64 places first, then the places of one of them.
  std::vector<uint64_t> sums((pool.blocks() >> BlockTree::kLeafBits) + size_t{1});
  const auto counts = [&](uint32_t block) {
    return pool.free_event[block] >= state &&
           (colouring == nullptr || (classes >> colouring->of_block[block] & 1) != 0);
  };
  const uint32_t blocks = pool.blocks_in(state);
  Located found;
  for (uint32_t block = 1; block <= blocks; ++block) {
    if (!counts(block)) continue;
    sums[order.rank(block) >> BlockTree::kLeafBits] += pool.size(block);
    found.total += pool.size(block);
  }
  if (bytes >= found.total) return found;
  size_t leaf = 0;
  uint64_t y = 0;
  while (y + sums[leaf] <= bytes) y += sums[leaf++];
  for (uint32_t place = static_cast<uint32_t>(leaf) << BlockTree::kLeafBits; place <= pool.blocks();
       ++place) {
    const uint32_t block = order.block(place);
    if (block == 0 || block > blocks || !counts(block)) continue;
    if (y + pool.size(block) > bytes) {
      found.block = block;
      found.from = y;
      found.to = y + pool.size(block);
      break;
    }
    y += pool.size(block);
  }
  return found;
}

Located place_of_block(const PoolIndex& pool, const BlockOrder& order, uint32_t state,
                       uint32_t block) {
  Located found{.block = block};
  const uint32_t blocks = pool.blocks_in(state);
  const uint32_t rank = order.rank(block);
  for (uint32_t other = 1; other <= blocks; ++other) {
    if (pool.free_event[other] < state) continue;
    found.total += pool.size(other);
    if (order.rank(other) < rank) found.from += pool.size(other);
  }
  found.to = found.from + pool.size(block);
  return found;
}

}  // namespace memscope::view
