// The torch source on a stand-in for libc10, built here with the same class, functions and argument
// types as torch's own (c10/core/CPUAllocator.h, Allocator.h, Device.h), so that names and calling
// convention are the compiler's. What was recorded is read from the agent's shadow map of live
// blocks; nothing is being recorded to disk.
#include "capture/sources/torch.h"

#include <map>
#include <string>

#include "capture/agent.h"
#include "capture/agent_state.h"
#include "capture/small_libraries.h"
#include "core/where.h"
#include "trace/record_table.h"

namespace memscope::capture {
namespace {

// TOTAL is the type of the totals: int64_t ("l") up to torch 1.13, size_t ("m") since.
constexpr char kLibC10[] = R"(
#include <stddef.h>
#include <stdint.h>
namespace c10 {
struct Device {
  Device(int8_t type, int8_t index) : type_(type), index_(index) {}
  int8_t type_, index_;
};
struct Seen { void* pointer; int64_t bytes; size_t allocated, reserved; int type, index, calls; };
extern "C" Seen seen;
Seen seen;
static void see(void* p, int64_t n, size_t a, size_t r, Device d) {
  seen = {p, n, a, r, d.type_, d.index_, seen.calls + 1};
}
void reportMemoryUsageToProfiler(void* p, int64_t n, TOTAL a, TOTAL r, Device d) {
  see(p, n, a, r, d);
}
void reportOutOfMemoryToProfiler(int64_t n, TOTAL a, TOTAL r, Device d) { see(nullptr, n, a, r, d); }
class ProfiledCPUMemoryReporter {
 public:
  void New(void* pointer, size_t bytes);
  void Delete(void* pointer);
  void OutOfMemory(size_t bytes);
};
// As if a profiler were on: the reporter reports.
void ProfiledCPUMemoryReporter::New(void* p, size_t n) {
  if (n == 13) throw 13;
  reportMemoryUsageToProfiler(p, n, 0, 0, Device(0, -1));
}
void ProfiledCPUMemoryReporter::Delete(void* p) {
  reportMemoryUsageToProfiler(p, -1, 0, 0, Device(0, -1));
}
void ProfiledCPUMemoryReporter::OutOfMemory(size_t n) {
  reportOutOfMemoryToProfiler(n, 0, 0, Device(0, -1));
}
static ProfiledCPUMemoryReporter reporter;
extern "C" {
void cpu_new(void* p, size_t n) { reporter.New(p, n); }
void cpu_delete(void* p) { CALL_DELETE(p); }
void cpu_oom(size_t n) { reporter.OutOfMemory(n); }
int new_throws(void* p) {
  try { reporter.New(p, 13); } catch (int error) { return error; }
  return 0;
}
void report(void* p, int64_t n, size_t a, size_t r, int8_t type, int8_t index) {
  reportMemoryUsageToProfiler(p, n, a, r, Device(type, index));
}
void report_oom(int64_t n, size_t a, size_t r, int8_t type, int8_t index) {
  reportOutOfMemoryToProfiler(n, a, r, Device(type, index));
}
}
}  // namespace c10
)";

struct Seen {
  void* pointer;
  int64_t bytes;
  size_t allocated, reserved;
  int type, index, calls;
};

constexpr char kModern[] = "-DTOTAL=size_t -DCALL_DELETE=reporter.Delete";
constexpr char kOld[] = "-DTOTAL=int64_t -DCALL_DELETE=reporter.Delete";
// Delete is there, but what frees calls something that no slot leads to.
constexpr char kNoDelete[] = "-DTOTAL=size_t -DCALL_DELETE='(void)'";

class TorchSourceTest : public SmallLibraries {
 protected:
  void TearDown() override {
    elf_patch::restore();
    SmallLibraries::TearDown();
    state.shadow.clear();
  }
  void load(const std::string& flags) {
    ASSERT_EQ(agent::install(), nullptr);
    state.shadow.clear();
    build("c10", kLibC10, flags + " -lstdc++", ".cc");
    library_ = open("c10");
    ASSERT_NE(library_, nullptr);
    elf_patch::refresh();
    seen_ = static_cast<Seen*>(dlsym(library_, "seen"));
  }
  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) {
    reinterpret_cast<void (*)(Arguments...)>(dlsym(library_, name))(arguments...);
  }
  // report(pointer, bytes, allocated, reserved, device type, index)
  void report(void* pointer, int64_t bytes, size_t allocated, size_t reserved, int8_t type,
              int8_t index) {
    call("report", pointer, bytes, allocated, reserved, type, index);
  }
  // "tensor cpu 100" of the block at `pointer`, "" where there is none.
  static std::string block(const void* pointer) {
    std::string text;
    state.shadow.for_each([&](const ShadowMap::Block& found) {
      if (found.addr != reinterpret_cast<uint64_t>(pointer)) return;
      const Where where = Where::unpack(sized_where(found.sized));
      text = std::string(layer_name(where.layer)) + " " + device_name(where.device) + " " +
             std::to_string(sized_size(found.sized));
    });
    return text;
  }

  void* library_ = nullptr;
  Seen* seen_ = nullptr;
  char memory_[64] = {};
};

TEST_F(TorchSourceTest, CpuTensorsAreRecordedByNewAndDelete) {
  ASSERT_NO_FATAL_FAILURE(load(kModern));
  call("cpu_new", static_cast<void*>(memory_), size_t{100});
  EXPECT_EQ(block(memory_), "tensor cpu 100");
  EXPECT_EQ(state.shadow.count(), 1u);  // and not a second time by the report inside New
  EXPECT_EQ(seen_->bytes, 100);         // the real New ran
  call("cpu_delete", static_cast<void*>(memory_));
  EXPECT_EQ(state.shadow.count(), 0u);
  EXPECT_EQ(seen_->calls, 2);
}

// A storage in shared memory does not come from the CPU allocator: only the report tells of it.
TEST_F(TorchSourceTest, CpuStoragesOutsideTheAllocatorAreRecordedByTheirReport) {
  ASSERT_NO_FATAL_FAILURE(load(kModern));
  report(memory_, 4096, 0, 4096, 0, -1);
  EXPECT_EQ(block(memory_), "tensor cpu 4096");
  report(memory_, -4096, 0, 0, 0, -1);
  EXPECT_EQ(state.shadow.count(), 0u);
}

TEST_F(TorchSourceTest, OtherDevicesAreRecordedAsPools) {
  ASSERT_NO_FATAL_FAILURE(load(kModern));
  report(memory_, 512, 1000, 2000, 1, 3);        // CUDA
  report(memory_ + 1, 1024, 1000, 2000, 20, 0);  // PrivateUse1 is the NPU
  EXPECT_EQ(block(memory_), "pool cuda:3 512");
  EXPECT_EQ(block(memory_ + 1), "pool npu:0 1024");
  report(memory_, -512, 488, 2000, 1, 3);
  EXPECT_EQ(block(memory_), "");
  EXPECT_EQ(state.shadow.count(), 1u);
}

// What comes in goes on unchanged, the two-byte Device included.
TEST_F(TorchSourceTest, TheRealFunctionsGetTheirArguments) {
  ASSERT_NO_FATAL_FAILURE(load(kModern));
  report(memory_, -512, 488, 2000, 1, 3);
  EXPECT_EQ(seen_->pointer, memory_);
  EXPECT_EQ(seen_->bytes, -512);
  EXPECT_EQ(seen_->allocated, 488u);
  EXPECT_EQ(seen_->reserved, 2000u);
  EXPECT_EQ(seen_->type, 1);
  EXPECT_EQ(seen_->index, 3);
  call("report_oom", int64_t{77}, size_t{88}, size_t{99}, int8_t{20}, int8_t{7});
  EXPECT_EQ(seen_->bytes, 77);
  EXPECT_EQ(seen_->allocated, 88u);
  EXPECT_EQ(seen_->reserved, 99u);
  EXPECT_EQ(seen_->type, 20);
  EXPECT_EQ(seen_->index, 7);
  call("cpu_oom", size_t{55});
  EXPECT_EQ(seen_->bytes, 55);
  EXPECT_EQ(seen_->calls, 3);
}

// torch up to 1.13 has the totals signed, and other names therefore.
TEST_F(TorchSourceTest, TheNamesOfTorch1AreKnownToo) {
  ASSERT_NO_FATAL_FAILURE(load(kOld));
  call("cpu_new", static_cast<void*>(memory_), size_t{100});
  report(memory_ + 1, 512, 1000, 2000, 1, 0);
  EXPECT_EQ(block(memory_), "tensor cpu 100");
  EXPECT_EQ(block(memory_ + 1), "pool cuda:0 512");
  EXPECT_EQ(seen_->reserved, 2000u);
  call("report_oom", int64_t{77}, size_t{88}, size_t{99}, int8_t{1}, int8_t{0});
  EXPECT_EQ(seen_->bytes, 77);
}

TEST_F(TorchSourceTest, ExceptionsPassAndLeaveNoBlock) {
  ASSERT_NO_FATAL_FAILURE(load(kModern));
  const auto throws = reinterpret_cast<int (*)(void*)>(dlsym(library_, "new_throws"));
  EXPECT_EQ(throws(memory_), 13);
  EXPECT_EQ(state.shadow.count(), 0u);
  // The thread is not inside a hook any more: the next tensor is recorded.
  call("cpu_new", static_cast<void*>(memory_), size_t{100});
  EXPECT_EQ(block(memory_), "tensor cpu 100");
}

TEST_F(TorchSourceTest, FoundTellsWhatIsWatched) {
  ASSERT_NO_FATAL_FAILURE(load(kModern));
  const torch_source::Found found = torch_source::found();
  EXPECT_EQ(found.libc10, path("libc10.so"));
  EXPECT_TRUE(found.loaded);
  EXPECT_TRUE(found.cpu);
  EXPECT_TRUE(found.devices);
}

// Blocks that are seen to be born and never to die would all look leaked.
TEST_F(TorchSourceTest, CpuTensorsAreOffWhereTheirEndCannotBeWatched) {
  ASSERT_NO_FATAL_FAILURE(load(kNoDelete));
  EXPECT_FALSE(torch_source::found().cpu);
  EXPECT_TRUE(torch_source::found().devices);
  call("cpu_new", static_cast<void*>(memory_), size_t{100});
  EXPECT_EQ(state.shadow.count(), 0u);
  EXPECT_EQ(seen_->bytes, 100);  // the program goes on as ever
  report(memory_, 512, 1000, 2000, 1, 0);
  EXPECT_EQ(block(memory_), "pool cuda:0 512");
}

}  // namespace
}  // namespace memscope::capture
