#include "analysis/align.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tsl/robin_set.h"

namespace memscope {
namespace {

// Edits looked ahead where the limit is hit: enough to find the way back after an operator more or
// less, few enough that the rest costs at most this many comparisons an element.
constexpr int32_t kGreedyEdits = 64;
constexpr int32_t kOutside = std::numeric_limits<int32_t>::min() / 2;  // of the grid

struct Box {
  int32_t a0 = 0, a1 = 0, b0 = 0, b1 = 0;
};

// A run of equal elements through which a shortest path goes, or (greedily) a point without one.
struct Snake {
  int32_t a = 0, b = 0, length = 0;
  bool greedy = false;
};

// Furthest-reaching points by diagonal, -size..size.
class Frontier {
 public:
  explicit Frontier(int32_t size) : size_(size), x_(2 * static_cast<size_t>(size) + 1) {}
  int32_t& operator[](int32_t k) { return x_[static_cast<size_t>(k) + static_cast<size_t>(size_)]; }

 private:
  int32_t size_;
  std::vector<int32_t> x_;
};

class Aligner {
 public:
  Aligner(std::vector<uint32_t> a, std::vector<uint32_t> b, const AlignLimits& limits)
      : a_(std::move(a)), b_(std::move(b)), limit_(limits.work), forward_(0), backward_(0) {
    // D edits cost at least D^2 comparisons, so the limit bounds the diagonals ever looked at.
    const double most = std::sqrt(static_cast<double>(limit_)) + kGreedyEdits + 2;
    const size_t halfway = (a_.size() + b_.size()) / 2 + 2;
    const auto half = static_cast<double>(halfway);
    most_edits_ = static_cast<int32_t>(std::min(most, half));
    forward_ = Frontier(most_edits_ + 2);
    backward_ = Frontier(most_edits_ + 2);
  }

  // visit(at in a, at in b, length) for each run, ascending.
  template <typename Visit>
  void run(Visit&& visit) {
    // Left parts first, so that runs come in order: a stack of boxes and of runs found already.
    struct Task {
      Box box;
      int32_t length = 0;  // not 0: a run at (a0, b0)
    };
    std::vector<Task> tasks{
        {{0, static_cast<int32_t>(a_.size()), 0, static_cast<int32_t>(b_.size())}}};
    while (!tasks.empty()) {
      const Task task = tasks.back();
      tasks.pop_back();
      Box box = task.box;
      if (task.length != 0) {
        visit(box.a0, box.b0, task.length);
        continue;
      }
      const int32_t head = equal_head(box);
      if (head != 0) visit(box.a0, box.b0, head);
      box.a0 += head;
      box.b0 += head;
      const int32_t tail = equal_tail(box);
      box.a1 -= tail;
      box.b1 -= tail;
      if (tail != 0) tasks.push_back({{box.a1, box.a1, box.b1, box.b1}, tail});
      if (box.a0 == box.a1 || box.b0 == box.b1) continue;
      const Snake snake = middle(box);
      if (snake.greedy && shortest_) {
        shortest_ = false;
        exact_a_ = box.a0;
        exact_b_ = box.b0;
      }
      tasks.push_back({{snake.a + snake.length, box.a1, snake.b + snake.length, box.b1}});
      if (snake.length != 0) {
        tasks.push_back({{snake.a, snake.a, snake.b, snake.b}, snake.length});
      }
      tasks.push_back({{box.a0, snake.a, box.b0, snake.b}});
    }
  }

  bool shortest() const { return shortest_; }
  int32_t exact_a() const { return exact_a_; }
  int32_t exact_b() const { return exact_b_; }
  uint64_t work() const { return work_; }

 private:
  int32_t equal_head(const Box& box) {
    const int32_t most = std::min(box.a1 - box.a0, box.b1 - box.b0);
    int32_t n = 0;
    while (n < most && a_[box.a0 + n] == b_[box.b0 + n]) ++n;
    work_ += static_cast<uint64_t>(n);
    return n;
  }
  int32_t equal_tail(const Box& box) {
    const int32_t most = std::min(box.a1 - box.a0, box.b1 - box.b0);
    int32_t n = 0;
    while (n < most && a_[box.a1 - 1 - n] == b_[box.b1 - 1 - n]) ++n;
    work_ += static_cast<uint64_t>(n);
    return n;
  }

  // One step of a search on diagonal k (x - y), `edits` edits from its corner: how far it gets.
  // `equal(x, y)` compares at a distance from that corner.
  template <typename Equal>
  int32_t advance(Frontier& reach, int32_t k, int32_t edits, int32_t n, int32_t m, int32_t& begin,
                  Equal&& equal) {
    const bool down = k == -edits || (k != edits && reach[k - 1] < reach[k + 1]);
    int32_t x = down ? reach[k + 1] : reach[k - 1] + 1;
    int32_t y = x - k;
    ++work_;
    if (x < 0 || x > n || y < 0 || y > m) {
      reach[k] = kOutside;
      return kOutside;
    }
    begin = x;
    while (x < n && y < m && equal(x, y)) ++x, ++y;
    work_ += static_cast<uint64_t>(x - begin);
    reach[k] = x;
    return x;
  }

  // The point in the middle of a shortest path: searched from both corners at once. The box's
  // corners do not match, so both parts are smaller than it.
  Snake middle(const Box& box) {
    const int32_t n = box.a1 - box.a0, m = box.b1 - box.b0;
    const int32_t delta = n - m;
    const bool odd = (delta & 1) != 0;
    const auto ahead = [&](int32_t x, int32_t y) { return a_[box.a0 + x] == b_[box.b0 + y]; };
    const auto behind = [&](int32_t x, int32_t y) {
      return a_[box.a1 - 1 - x] == b_[box.b1 - 1 - y];
    };
    forward_[1] = 0;
    backward_[1] = 0;
    forward_[-1] = backward_[-1] = kOutside;
    const int32_t enough = (n + m + 1) / 2;
    for (int32_t edits = 0; edits <= enough; ++edits) {
      if (edits != 0) {
        forward_[edits + 1] = forward_[-edits - 1] = kOutside;
        backward_[edits + 1] = backward_[-edits - 1] = kOutside;
      }
      // Diagonals that still cross the box, of the edits' parity.
      const int32_t low = edits <= m ? -edits : -m + ((edits - m) & 1);
      const int32_t high = edits <= n ? edits : n - ((edits - n) & 1);
      int32_t begin = 0;
      for (int32_t k = low; k <= high; k += 2) {
        const int32_t x = advance(forward_, k, edits, n, m, begin, ahead);
        const int32_t other = delta - k;  // the same diagonal, seen from the far corner
        if (!odd || x == kOutside || other < -(edits - 1) || other > edits - 1) continue;
        if (x + backward_[other] >= n) return {box.a0 + begin, box.b0 + begin - k, x - begin};
      }
      for (int32_t k = low; k <= high; k += 2) {
        const int32_t x = advance(backward_, k, edits, n, m, begin, behind);
        const int32_t other = delta - k;
        if (odd || x == kOutside || other < -edits || other > edits) continue;
        if (x + forward_[other] >= n) return {box.a1 - x, box.b1 - (x - k), x - begin};
      }
      const bool spent = work_ > limit_ && edits >= kGreedyEdits;
      if (spent || edits + 1 >= most_edits_) return furthest(box, low, high);
    }
    return furthest(box, -std::min(enough, m), std::min(enough, n));  // never: paths have met
  }

  // The limit is hit: split where one of the two searches got furthest. After d edits both are at
  // least d elements away from their corners, so both parts are smaller than the box.
  Snake furthest(const Box& box, int32_t low, int32_t high) {
    const int32_t n = box.a1 - box.a0, m = box.b1 - box.b0;
    int32_t best = -1, x = 0, y = 0;
    for (int32_t k = low; k <= high; k += 2) {
      if (const int32_t at = forward_[k]; at >= 0 && 2 * at - k > best) {
        best = 2 * at - k;
        x = at;
        y = at - k;
      }
      if (const int32_t at = backward_[k]; at >= 0 && 2 * at - k > best) {
        best = 2 * at - k;
        x = n - at;
        y = m - (at - k);
      }
    }
    return {box.a0 + x, box.b0 + y, 0, true};
  }

  std::vector<uint32_t> a_, b_;
  uint64_t limit_, work_ = 0;
  int32_t most_edits_ = 0;
  bool shortest_ = true;
  int32_t exact_a_ = 0, exact_b_ = 0;
  Frontier forward_, backward_;
};

// What the other sequence does not know cannot match: left out, the rest stays exact.
void keep_known(std::span<const uint32_t> from, std::span<const uint32_t> other, size_t offset,
                std::vector<uint32_t>& elements, std::vector<uint32_t>& positions) {
  const tsl::robin_set<uint32_t> known(other.begin(), other.end());
  for (size_t i = 0; i < from.size(); ++i) {
    if (!known.contains(from[i])) continue;
    elements.push_back(from[i]);
    positions.push_back(static_cast<uint32_t>(offset + i));
  }
}

void add(std::vector<AlignedRun>& runs, uint32_t base_at, uint32_t compare_at, uint32_t length) {
  if (!runs.empty()) {
    AlignedRun& last = runs.back();
    if (last.base_at + last.length == base_at && last.compare_at + last.length == compare_at) {
      last.length += length;
      return;
    }
  }
  runs.push_back({base_at, compare_at, length});
}

}  // namespace

Alignment align(std::span<const uint32_t> base, std::span<const uint32_t> compare,
                const AlignLimits& limits) {
  Alignment result;
  const size_t most = std::min(base.size(), compare.size());
  size_t head = 0, tail = 0;
  while (head < most && base[head] == compare[head]) ++head;
  while (tail < most - head && base[base.size() - 1 - tail] == compare[compare.size() - 1 - tail]) {
    ++tail;
  }
  if (head != 0) add(result.runs, 0, 0, static_cast<uint32_t>(head));
  const auto a = base.subspan(head, base.size() - head - tail);
  const auto b = compare.subspan(head, compare.size() - head - tail);
  std::vector<uint32_t> a_known, b_known, a_at, b_at;
  keep_known(a, b, head, a_known, a_at);
  keep_known(b, a, head, b_known, b_at);
  Aligner aligner(std::move(a_known), std::move(b_known), limits);
  aligner.run([&](int32_t x, int32_t y, int32_t length) {
    for (int32_t i = 0; i < length; ++i) add(result.runs, a_at[x + i], b_at[y + i], 1);
  });
  result.shortest = aligner.shortest();
  result.work = aligner.work() + head + tail;
  if (!result.shortest) {
    result.exact_base = a_at[static_cast<size_t>(aligner.exact_a())];
    result.exact_compare = b_at[static_cast<size_t>(aligner.exact_b())];
  }
  if (tail != 0) {
    add(result.runs, static_cast<uint32_t>(base.size() - tail),
        static_cast<uint32_t>(compare.size() - tail), static_cast<uint32_t>(tail));
  }
  return result;
}

}  // namespace memscope
