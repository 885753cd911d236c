// Work on untrusted bytes in child processes: several at a time, each with limits of memory and
// time. A child that crashes, hangs or eats memory costs its own answers and nothing else.
//
// The caller should have no other thread that holds a lock the work needs (malloc's is taken care
// of by fork).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace memscope {

struct WorkerLimits {
  unsigned at_once = 1;
  uint64_t memory = uint64_t{4} << 30;  // bytes beyond what the parent has mapped
  size_t answer_bytes = size_t{256} << 20;
  std::chrono::steady_clock::time_point deadline;
};

enum class WorkerEnd : uint8_t { kExited, kDied, kNoTime };

// Runs work(i, fd) in a child for each i < count; what it writes to fd is handed, with its end, to
// done(i, bytes, end) in the parent, in no particular order.
void run_workers(
    size_t count, const WorkerLimits& limits, const std::function<void(size_t index, int fd)>& work,
    const std::function<void(size_t index, const std::string& bytes, WorkerEnd end)>& done);

}  // namespace memscope
