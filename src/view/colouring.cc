#include "view/colouring.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "view/block_order.h"
#include "view/text.h"

namespace memscope::view {
namespace {

constexpr uint32_t kNamed = 23;  // of sites, owners and threads
constexpr std::array<std::string_view, kColourCount> kNames = {"site", "owner",  "size",   "age",
                                                               "step", "thread", "verdict"};

struct Weight {
  uint64_t alive = 0;   // bytes at the end
  double turnover = 0;  // bytes x how long, in events
};

// The keys that get a colour of their own: half for what they hold at the end, half for what they
// held meanwhile.
template <typename KeyOf>
std::vector<uint32_t> largest(const PoolIndex& pool, size_t keys, KeyOf key_of) {
  std::vector<Weight> weights(keys);
  const uint32_t events = pool.events();
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    Weight& weight = weights[key_of(block)];
    const uint32_t end = pool.free_event[block];
    if (end == kAlive) weight.alive += pool.size(block);
    weight.turnover += static_cast<double>(pool.size(block)) *
                       static_cast<double>(std::min(end, events) - pool.alloc_event[block]);
  }
  std::vector<uint32_t> chosen, order(keys);
  std::iota(order.begin(), order.end(), 0);
  const auto take = [&](size_t until) {
    for (const uint32_t key : order) {
      if (chosen.size() >= until) return;
      if (weights[key].turnover == 0 && weights[key].alive == 0) continue;
      if (std::find(chosen.begin(), chosen.end(), key) == chosen.end()) chosen.push_back(key);
    }
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return weights[a].alive > weights[b].alive; });
  while (!order.empty() && weights[order.back()].alive == 0) order.pop_back();
  take(kNamed / 2);
  order.resize(keys);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return weights[a].turnover > weights[b].turnover;
  });
  take(kNamed);
  return chosen;
}

template <typename KeyOf, typename Describe>
void colour_by_key(const PoolIndex& pool, size_t keys, KeyOf key_of, Describe describe,
                   Colouring& out) {
  std::vector<uint8_t> class_of(keys);
  for (const uint32_t key : largest(pool, keys, key_of)) {
    class_of[key] = static_cast<uint8_t>(out.classes.size());
    ColourClass entry = describe(key);
    entry.key = key;
    entry.hue = hue_of(entry.name);
    out.classes.push_back(std::move(entry));
  }
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    out.of_block[block] = class_of[key_of(block)];
  }
}

// Powers of four from 512 bytes on.
uint8_t size_class(uint64_t size) {
  const int steps = (std::bit_width(size == 0 ? 0 : size - 1) - 9 + 1) / 2;
  return static_cast<uint8_t>(std::clamp(steps, 0, 12) + 1);
}

void colour_by_size(const PoolIndex& pool, Colouring& out) {
  for (int i = 0; i <= 12; ++i) {
    const int64_t to = int64_t{512} << (2 * i), from = i == 0 ? 0 : (to >> 2) + 1;
    ColourClass entry;
    entry.from = from;
    entry.to = i == 12 ? -1 : to;
    entry.name = i == 12 ? "> " + bytes_text(static_cast<uint64_t>(to >> 2))
                         : "≤ " + bytes_text(static_cast<uint64_t>(to));
    entry.hue = static_cast<uint32_t>(i * 24);
    out.classes.push_back(std::move(entry));
  }
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    out.of_block[block] = size_class(pool.size(block));
  }
}

void colour_by_age(const InputIndex& input, const PoolIndex& pool, Colouring& out) {
  const Lifetimes lifetimes(input, pool);
  for (uint8_t i = 0; i < kLifetimeClasses; ++i) {
    ColourClass entry;
    if (i == kNeverFreed) {
      entry.name = "never freed";
    } else if (i == kYoungAtEnd) {
      entry.name = "young at the end";
    } else {
      entry.from = static_cast<int64_t>(Lifetimes::shortest(i));
      entry.to = i == kFirstFreed ? -1 : static_cast<int64_t>(Lifetimes::shortest(i - 1));
      entry.name = i == kFirstFreed ? "≥ " + duration_text(Lifetimes::shortest(i))
                                    : "< " + duration_text(Lifetimes::shortest(i - 1));
    }
    entry.hue = i * 24u;
    out.classes.push_back(std::move(entry));
  }
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    out.of_block[block] = static_cast<uint8_t>(lifetimes.of(block) + 1);
  }
}

// Sixteen equal parts of the steps, or of the time where there are none.
void colour_by_step(const InputIndex& input, const PoolIndex& pool, Colouring& out) {
  constexpr uint64_t kParts = 16;
  const uint64_t count = input.steps.count();
  const uint64_t parts = count == 0 ? kParts : std::min(kParts, count);
  out.classes[0].name = count == 0 ? "other" : "before the first step";
  for (uint64_t i = 0; i < parts; ++i) {
    ColourClass entry;
    if (count != 0) {
      entry.from = static_cast<int64_t>(i * count / parts + 1);
      entry.to = static_cast<int64_t>((i + 1) * count / parts);
      entry.name = entry.from == entry.to
                       ? "step " + std::to_string(entry.from)
                       : "steps " + std::to_string(entry.from) + "–" + std::to_string(entry.to);
    } else {
      const uint64_t span = input.end - input.begin;
      entry.from = static_cast<int64_t>(input.begin + i * span / parts);
      entry.to = static_cast<int64_t>(input.begin + (i + 1) * span / parts);
      entry.name = "from " + duration_text(static_cast<uint64_t>(entry.from) - input.begin);
    }
    entry.hue = static_cast<uint32_t>(i * 20);
    out.classes.push_back(std::move(entry));
  }
  // Blocks come in the order of their birth: each class is a range of them.
  uint32_t block = 1;
  for (uint64_t i = 0; i <= parts; ++i) {
    uint64_t until = input.end + 1;  // the first moment that is a later part's
    if (count != 0) {
      until = i == 0 ? input.steps.begin : input.steps.ends[i * count / parts - 1] + 1;
    } else if (i < parts) {
      until = input.begin + i * (input.end - input.begin) / parts;
    }
    if (i == parts) until = ~uint64_t{0};
    for (; block <= pool.blocks() && pool.begin_time(block) < until; ++block) {
      out.of_block[block] = static_cast<uint8_t>(i);
    }
  }
}

void colour_by_verdict(const InputIndex& input, const PoolIndex& pool,
                       const std::vector<VerdictBlocks>& verdicts, Colouring& out) {
  out.classes[0].name = "no verdict";
  const size_t count = std::min<size_t>(verdicts.size(), kMaxClasses - 1);
  const std::vector<VerdictBlocks> shown(verdicts.begin(),
                                         verdicts.begin() + static_cast<ptrdiff_t>(count));
  for (const VerdictBlocks& verdict : shown) {
    ColourClass entry;
    entry.name = verdict.name;
    entry.key = verdict.verdict;
    entry.hue = hue_of(entry.name);
    out.classes.push_back(std::move(entry));
  }
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    if (pool.free_event[block] != kAlive) continue;
    const int64_t verdict = verdict_of(input, pool, shown, block);
    for (size_t i = 0; i < shown.size(); ++i) {
      if (shown[i].verdict == verdict) out.of_block[block] = static_cast<uint8_t>(i + 1);
    }
  }
}

// What each class holds: at the end, ever, and at most.
void measure(const PoolIndex& pool, Colouring& out) {
  std::array<uint64_t, kMaxClasses> now{}, peak{}, blocks{};
  for (uint32_t event = 0; event < pool.events(); ++event) {
    const uint32_t word = pool.event[event];
    const uint32_t block = word & ~kFreeBit;
    const uint8_t in = out.of_block[block];
    if ((word & kFreeBit) != 0) {
      now[in] -= pool.size(block);
    } else {
      now[in] += pool.size(block);
      peak[in] = std::max(peak[in], now[in]);
      ++blocks[in];
    }
  }
  for (size_t i = 0; i < out.classes.size(); ++i) {
    out.classes[i].bytes = now[i];
    out.classes[i].peak = peak[i];
    out.classes[i].blocks = blocks[i];
  }
}

}  // namespace

std::optional<ColourBy> colour_from_name(std::string_view name) {
  const auto* at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<ColourBy>(at - kNames.begin());
}

std::string_view colour_name(ColourBy by) {
  return kNames[static_cast<size_t>(by)];
}

uint32_t hue_of(std::string_view name) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100'0000'01b3;
  hash = (hash ^ hash >> 32) * 0x9E37'79B9'7F4A'7C15;
  return static_cast<uint32_t>((hash >> 32) % 360);
}

int64_t verdict_of(const InputIndex& input, const PoolIndex& pool,
                   const std::vector<VerdictBlocks>& verdicts, uint32_t block) {
  if (verdicts.empty() || pool.free_event[block] != kAlive) return -1;
  if ((pool.sized[block] & kFateUnknown) != 0) return -1;
  const uint32_t site = input.site_of_stack(pool.stack[block]);
  if (site == 0) return -1;
  for (const VerdictBlocks& verdict : verdicts) {
    if (std::find(verdict.sites.begin(), verdict.sites.end(), site) == verdict.sites.end()) {
      continue;
    }
    if (input.step_at(pool.begin_time(block)) >= verdict.first_step) return verdict.verdict;
  }
  return -1;
}

Colouring::Colouring(const InputIndex& input, const PoolIndex& pool, ColourBy by,
                     const std::vector<VerdictBlocks>& verdicts) {
  classes.resize(1);
  classes[0].name = "other";
  of_block.resize(pool.blocks() + size_t{1});
  switch (by) {
    case ColourBy::kSite:
      colour_by_key(
          pool, input.site_count(),
          [&](uint32_t block) { return input.site_of_stack(pool.stack[block]); },
          [&](uint32_t site) {
            ColourClass entry;
            entry.name = input.site_place(site);
            entry.detail = input.site(site).function;
            return entry;
          },
          *this);
      break;
    case ColourBy::kOwner:
      colour_by_key(
          pool, input.owners.size(), [&](uint32_t block) { return pool.owner[block]; },
          [&](uint32_t owner) {
            ColourClass entry;
            entry.name = owner == 0 ? "(no owner)" : input.owners[owner];
            return entry;
          },
          *this);
      break;
    case ColourBy::kThread:
      colour_by_key(
          pool, 65536, [&](uint32_t block) { return pool.thread[block]; },
          [&](uint32_t thread) {
            ColourClass entry;
            entry.name = input.thread_name(thread);
            if (entry.name.empty()) entry.name = "(unknown thread)";
            return entry;
          },
          *this);
      break;
    case ColourBy::kSize:
      colour_by_size(pool, *this);
      break;
    case ColourBy::kAge:
      colour_by_age(input, pool, *this);
      break;
    case ColourBy::kStep:
      colour_by_step(input, pool, *this);
      break;
    case ColourBy::kVerdict:
      colour_by_verdict(input, pool, verdicts, *this);
      break;
  }
  measure(pool, *this);
}

}  // namespace memscope::view
