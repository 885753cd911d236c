#include "symbols/worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>

namespace memscope {
namespace {

using std::chrono::steady_clock;

struct Ends {
  std::map<size_t, std::pair<std::string, WorkerEnd>> of;
  void run(size_t count, WorkerLimits limits, const std::function<void(size_t, int)>& work) {
    run_workers(count, limits, work, [&](size_t i, const std::string& bytes, WorkerEnd end) {
      EXPECT_TRUE(of.emplace(i, std::pair(bytes, end)).second) << "told twice of " << i;
    });
    EXPECT_EQ(of.size(), count);
  }
};

void say(int fd, const std::string& text) {
  EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

WorkerLimits limits(std::chrono::milliseconds time) {
  return {.at_once = 2, .deadline = steady_clock::now() + time};
}

TEST(Worker, HandsOverWhatEachWrote) {
  Ends ends;
  ends.run(5, limits(std::chrono::seconds(30)),
           [](size_t index, int fd) { say(fd, "job " + std::to_string(index)); });
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ends.of[i].first, "job " + std::to_string(i));
    EXPECT_EQ(ends.of[i].second, WorkerEnd::kExited);
  }
}

TEST(Worker, OneThatDiesCostsItsOwnAnswersOnly) {
  Ends ends;
  ends.run(3, limits(std::chrono::seconds(30)), [](size_t index, int fd) {
    say(fd, "begun");
    if (index == 1) ::raise(SIGKILL);
  });
  EXPECT_EQ(ends.of[0].second, WorkerEnd::kExited);
  EXPECT_EQ(ends.of[1], std::pair(std::string("begun"), WorkerEnd::kDied));
  EXPECT_EQ(ends.of[2].second, WorkerEnd::kExited);
}

TEST(Worker, OneThatHangsIsEndedAndTheRestNotBegun) {
  Ends ends;
  WorkerLimits one = limits(std::chrono::milliseconds(200));
  one.at_once = 1;
  ends.run(3, one, [](size_t, int fd) {
    say(fd, "begun");
    for (;;) ::pause();
  });
  EXPECT_EQ(ends.of[0], std::pair(std::string("begun"), WorkerEnd::kNoTime));
  EXPECT_EQ(ends.of[1], std::pair(std::string(), WorkerEnd::kNoTime));
  EXPECT_EQ(ends.of[2], std::pair(std::string(), WorkerEnd::kNoTime));
}

TEST(Worker, OneThatWritesForEverIsEnded) {
  Ends ends;
  WorkerLimits small = limits(std::chrono::seconds(30));
  small.answer_bytes = 1 << 20;
  ends.run(1, small, [](size_t, int fd) {
    for (;;) say(fd, std::string(4096, 'x'));
  });
  EXPECT_LE(ends.of[0].first.size(), size_t{1} << 20);
  EXPECT_EQ(ends.of[0].second, WorkerEnd::kDied);
}

#if !defined(__SANITIZE_ADDRESS__)  // whose allocator ends the process in its own way
TEST(Worker, OneThatEatsMemoryIsRefusedIt) {
  Ends ends;
  WorkerLimits small = limits(std::chrono::seconds(30));
  small.memory = 64 << 20;
  ends.run(1, small, [](size_t, int fd) {
    say(fd, "begun");
    std::vector<std::string> eaten;
    for (;;) eaten.emplace_back(1 << 20, 'x');
  });
  EXPECT_EQ(ends.of[0], std::pair(std::string("begun"), WorkerEnd::kDied));
}
#endif

}  // namespace
}  // namespace memscope
