// Small indices for the tests: written by hand, or at random.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "view/index_builder.h"
#include "view/index_file.h"

namespace memscope::view {

inline constexpr Where kTestWhere{Layer::kTensor, Device{}};
inline constexpr uint64_t kTestOrigin = 1'000'000;

// Events as a test writes them; build() makes the index.
class IndexScript {
 public:
  explicit IndexScript(std::filesystem::path directory = {}) : directory_(std::move(directory)) {}

  // A stack of one frame: its site is file:line. The same line, the same stack.
  StackId line(uint32_t number, std::string_view function = "train",
               std::string_view file = "/home/me/train.py") {
    StringTable& strings = source_.strings();
    Frame frame{.file = strings.intern(file),
                .function = strings.intern(function),
                .line = number,
                .end_line = number};
    StackTable& stacks = source_.stacks();
    return stacks.intern(StackId(), stacks.intern_frame(frame));
  }
  // A native frame that `caller` has called.
  StackId native(StackId caller, std::string_view object, std::string_view build_id,
                 uint64_t offset) {
    StringTable& strings = source_.strings();
    const Frame frame{.file = strings.intern(object),
                      .module = strings.intern(build_id),
                      .kind = FrameKind::kNative,
                      .offset = offset};
    StackTable& stacks = source_.stacks();
    return stacks.intern(caller, stacks.intern_frame(frame));
  }
  void alloc(uint64_t time, uint64_t addr, uint64_t size, StackId stack = {}, uint32_t thread = 1) {
    Event event{.kind = EventKind::kAlloc, .where = kTestWhere, .thread = ThreadId(thread)};
    event.stack = stack;
    event.time = kTestOrigin + time;
    event.addr = addr;
    event.size = size;
    source_.add(event);
  }
  void free(uint64_t time, uint64_t addr, uint32_t thread = 1) {
    Event event{.kind = EventKind::kFree, .where = kTestWhere, .thread = ThreadId(thread)};
    event.time = kTestOrigin + time;
    event.addr = addr;
    source_.add(event);
  }
  void event(Event event) {
    event.time += kTestOrigin;
    source_.add(event);
  }
  template <typename Record>
  void record(uint64_t time, const Record& record) {
    source_.add_record(kTestOrigin + time, record);
  }
  void step(uint64_t time) {
    record(time, StepRecord{.source = static_cast<uint64_t>(StepSource::kApi), .index = ++steps_});
  }

  std::shared_ptr<InputIndex> build() {
    auto index = std::make_shared<InputIndex>();
    index->facts.path = "/runs/1";
    index->facts.ended = "stop";
    IndexBuilder builder(*index, directory_, [](uint64_t ticks) { return ticks; });
    build_index(source_, builder, [](uint64_t) { return true; });
    copy_tables(source_.stacks(), source_.strings(), *index);
    index->threads = {{}, {101, "main"}, {102, "worker"}, {103, "loader"}};
    builder.finish();
    return index;
  }

 private:
  std::filesystem::path directory_;
  VectorSource source_;
  uint64_t steps_ = 0;
};

// Blocks of all sizes and lifetimes at `lines` lines, in `steps` steps of 1,000 ns; some are never
// freed. The same seed, the same index.
inline std::shared_ptr<InputIndex> random_index(uint32_t seed, size_t events, uint32_t lines = 40,
                                                uint32_t steps = 20) {
  std::mt19937 random(seed);
  IndexScript script;
  std::vector<StackId> stacks;
  for (uint32_t i = 0; i < lines; ++i) {
    stacks.push_back(script.line(10 + i, i % 3 == 0 ? "forward" : "backward"));
  }
  std::vector<uint64_t> live;
  uint64_t next = 0x1000;
  uint32_t step = 0;
  for (size_t i = 0; i < events; ++i) {
    const uint64_t time = i * steps * 1000 / events;
    for (; step + 1 < time / 1000; ++step) script.step((step + 1) * 1000);
    if (live.size() < 20 || random() % 100 < 52) {
      const uint64_t size = uint64_t{1} << random() % 20 | random() % 64;
      script.alloc(time, next, size, stacks[random() % lines], 1 + random() % 3);
      if (random() % 50 != 0) live.push_back(next);
      next += size + random() % 512;
    } else {
      // Often the newest, as a stack; sometimes any.
      const size_t at = random() % 3 == 0 ? random() % live.size() : live.size() - 1;
      script.free(time, live[at], 1 + random() % 3);
      live.erase(live.begin() + static_cast<ptrdiff_t>(at));
    }
  }
  for (; step < steps; ++step) script.step((step + 1) * 1000);
  return script.build();
}

}  // namespace memscope::view
