// What colours stand for: every block's class, at most 32 of them, fixed for the whole run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "view/input_index.h"

namespace memscope::view {

enum class ColourBy : uint8_t { kSite, kOwner, kSize, kAge, kStep, kThread, kVerdict };
inline constexpr size_t kColourCount = 7;
std::optional<ColourBy> colour_from_name(std::string_view name);
std::string_view colour_name(ColourBy by);

inline constexpr uint32_t kMaxClasses = 32;

struct ColourClass {
  std::string name, detail;
  int64_t key = -1;            // site, owner, thread, verdict: its number
  int64_t from = -1, to = -1;  // bytes, ns or steps of a range; -1 open
  uint64_t bytes = 0;          // alive at the end
  uint64_t blocks = 0;         // ever
  uint64_t peak = 0;           // most at one time
  uint32_t hue = 0;            // 0..359, a hash of the name
};

// Which blocks a verdict accuses: alive at the end, of one of these sites, born in `first_step` or
// later.
struct VerdictBlocks {
  int64_t verdict = 0;
  std::string name;
  std::vector<uint32_t> sites;
  uint32_t first_step = 0;
};

struct Colouring {
  std::vector<ColourClass> classes;  // 0 is the rest
  FileVector<uint8_t> of_block;

  Colouring() = default;
  Colouring(const InputIndex& input, const PoolIndex& pool, ColourBy by,
            const std::vector<VerdictBlocks>& verdicts);
};

// The verdict that accuses a block, -1 for none.
int64_t verdict_of(const InputIndex& input, const PoolIndex& pool,
                   const std::vector<VerdictBlocks>& verdicts, uint32_t block);

uint32_t hue_of(std::string_view name);

}  // namespace memscope::view
