// Whether the simulator makes the decisions that a recorded allocator made: its requests are played
// again under given settings, and every segment event, every address and the reserved bytes are
// compared.
//
//   PoolCheck check = verify_pool(input, settings);
//   PoolCheck best = calibrate_pool(input, settings);     // tries what the settings do not say
//
// empty_cache() leaves no entry of its own: a run of segment frees before an entry is one if a
// frame of it is named so, if nothing was allocated, or if its stack is not the request's; else it
// is the allocator's own answer to a full device, which a driver that refuses once brings about
// here.
//
// Promises: linear in the entries but for the simulator's look-ups; deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/pool_settings.h"
#include "analysis/pool_simulator.h"
#include "core/stacks.h"
#include "replay/pool_history.h"
#include "replay/pool_state.h"

namespace memscope {

// One device of a snapshot.
struct PoolInput {
  const PoolHistory& history;
  const PoolTables& tables;
  const StackTable& stacks;
  const StringTable& strings;
};

struct PoolCheck {
  PoolSettings settings;
  uint64_t segment_events = 0, same_events = 0;  // recorded; made in the same place and order
  uint64_t made_events = 0;                      // by the simulator
  uint64_t allocs = 0, same_addrs = 0;
  uint64_t operations = 0;
  uint64_t most_reserved_off = 0;  // bytes
  uint64_t user_calls = 0, retries = 0;
  std::string first_difference;  // "" for none; else which entry, expected and got
  std::string refused;           // why there is no model, "" where there is one

  bool exact() const {
    return refused.empty() && segment_events == same_events && made_events == same_events &&
           allocs == same_addrs && most_reserved_off == 0;
  }
};

PoolCheck verify_pool(const PoolInput& input, const PoolSettings& settings);

// The settings nearest to `settings` under which most is as recorded: padding, alignment, pages.
// `settings` themselves where nothing is better.
PoolCheck calibrate_pool(const PoolInput& input, const PoolSettings& settings);

// Where the ranges of expandable segments begin that were there: each at the lowest address at
// which any of it was ever mapped.
std::vector<PoolSimulator::Base> range_bases(const PoolHistory& history, const PoolStart& start,
                                             const PoolTables& tables);

}  // namespace memscope
