// The fixture of the walk's tests: what is loaded, a cache, and a walk that returns addresses.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "capture/module_map.h"
#include "capture/native_bounds.h"
#include "capture/unwind_walk.h"

namespace memscope::capture {

class UnwindTables {
 public:
  UnwindTables()
      : map_memory_(std::make_unique<uint64_t[]>(ModuleMap::kBytes / 8)),
        cache_memory_(std::make_unique<uint64_t[]>(UnwindCache::kBytes / 8)) {
    modules.attach(map_memory_.get());
    cache.attach(cache_memory_.get());
    native_bounds::prepare();
    update();
  }
  void update() {
    if (modules.update()) cache.forget_all();
  }
  bool look_up(uint64_t pc, uint64_t epoch, PackedRule* rule, uint64_t* serial) {
    Module module;
    if (!modules.find(pc, &module)) return false;
    rule->word = pack_rule(find_unwind_rule(module.cfi, pc));
    *serial = module.serial;
    cache.insert(pc, epoch, rule->word, *serial);
    return true;
  }

  ModuleMap modules;
  UnwindCache cache;

 private:
  std::unique_ptr<uint64_t[]> map_memory_, cache_memory_;
};

struct Walked {
  std::vector<uint64_t> calls;  // as return addresses, to be compared with backtrace()
  std::vector<uint64_t> modules;
  WalkEnd end = WalkEnd::kLost;
};

// The frames above the caller, which must have no frames of its own to hide: always inlined.
[[gnu::always_inline]] inline Walked walk_here(UnwindTables& tables, size_t limit = 1000) {
  UnwindState here;
  MEMSCOPE_UNWIND_HERE(here);
  Walked walked;
  const StackBounds bounds = native_bounds::find(here.sp);
  EXPECT_TRUE(bounds.holds(here.sp));
  if (!bounds.holds(here.sp)) return walked;
  walked.end = walk_native(
      tables.cache, here, bounds.high,
      [&](uint64_t pc, uint64_t epoch, PackedRule* rule, uint64_t* serial) {
        return tables.look_up(pc, epoch, rule, serial);
      },
      [&](const NativeFrame& frame) {
        EXPECT_LE(frame.begin, frame.end);  // equal: the outermost, where the stack ends
        walked.calls.push_back(frame.pc + 1);
        walked.modules.push_back(frame.module);
        return walked.calls.size() <= limit;
      });
  if (!walked.calls.empty()) {  // the caller itself
    walked.calls.erase(walked.calls.begin());
    walked.modules.erase(walked.modules.begin());
  }
  return walked;
}

}  // namespace memscope::capture
