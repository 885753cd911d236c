// The truth is libgcc's unwinder, on which glibc's backtrace() and exceptions rest (asked directly,
// since sanitizers replace backtrace()). Both are asked in the same function; the frames above it
// must be the same, to the outermost.
#include "capture/unwind_walk.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>

#include "capture/small_libraries.h"
#include "capture/unwind_fixture.h"

namespace memscope::capture {
namespace {

UnwindTables& tables() {
  static UnwindTables tables;
  return tables;
}

struct Compared {
  Walked walked;
  std::vector<uint64_t> truth;
};
Compared compared;

// Return addresses from the caller outwards, its own first.
[[gnu::always_inline]] inline std::vector<uint64_t> truth_here() {
  std::vector<uint64_t> addresses;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* data) {
        // The outermost frame has a caller at 0.
        const uint64_t address = _Unwind_GetIP(context);
        if (address != 0) static_cast<std::vector<uint64_t>*>(data)->push_back(address);
        return _URC_NO_REASON;
      },
      &addresses);
  return addresses;
}

// Both walks, from here.
__attribute__((noinline)) void compare_here() {
  compared.truth = truth_here();
  compared.walked = walk_here(tables());
  compared.truth.erase(compared.truth.begin());
  asm volatile("" ::: "memory");  // not a tail call
}

void expect_equal(size_t at_least) {
  EXPECT_EQ(compared.walked.end, WalkEnd::kOutermost);
  EXPECT_GE(compared.walked.calls.size(), at_least);
  EXPECT_EQ(compared.walked.calls, compared.truth);
}

void compare_anew() {
  tables().update();
  compare_here();
}

TEST(UnwindWalk, AgreesWithLibgcc) {
  compare_anew();
  expect_equal(5);
  compare_here();  // now by the cache alone
  expect_equal(5);
}

__attribute__((noinline)) int recurse(int depth, const std::function<void()>& then) {
  if (depth == 0) {
    then();
    return 0;
  }
  const int result = recurse(depth - 1, then) + depth;
  asm volatile("" ::: "memory");
  return result;
}

TEST(UnwindWalk, GoesThroughARecursion) {
  EXPECT_EQ(recurse(300, compare_anew), 300 * 301 / 2);
  expect_equal(300);
}

TEST(UnwindWalk, GoesThroughACallBackFromAnotherLibrary) {
  int numbers[] = {2, 1};
  std::qsort(numbers, 2, sizeof numbers[0], [](const void* a, const void* b) {
    compare_anew();
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  EXPECT_EQ(numbers[0], 1);
  expect_equal(6);
}

__attribute__((noinline)) size_t with_moving_stack(size_t bytes) {
  auto* room = static_cast<char*>(__builtin_alloca(bytes));
  std::memset(room, 7, bytes);
  compare_anew();
  size_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum += static_cast<unsigned char>(room[i]);
  return sum;
}
TEST(UnwindWalk, GoesThroughAFrameOfUnknownSize) {
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{10'000}}) {
    EXPECT_EQ(with_moving_stack(bytes), 7 * bytes);
    expect_equal(6);
  }
}

// GCC describes such a frame with expressions on x86-64 ("*(rbp - 8)").
__attribute__((noinline)) int with_aligned_stack(int count) {
  alignas(64) volatile char aligned[128];
  for (volatile char& c : aligned) c = 1;
  auto* room = static_cast<char*>(__builtin_alloca(static_cast<size_t>(count)));
  std::memset(room, 1, static_cast<size_t>(count));
  compare_anew();
  return aligned[count] + room[0];
}
TEST(UnwindWalk, GoesThroughAFrameThatAlignsTheStack) {
  EXPECT_EQ(with_aligned_stack(100), 2);
  expect_equal(6);
}

TEST(UnwindWalk, IsRightWhileAnExceptionPasses) {
  struct Comparer {
    ~Comparer() { compare_anew(); }  // run by the unwinder's landing pad
  };
  EXPECT_THROW(
      {
        const Comparer comparer;
        throw std::runtime_error("passing");
      },
      std::runtime_error);
  expect_equal(5);
}

TEST(UnwindWalk, EndsWhereAThreadBegins) {
  std::thread(compare_anew).join();
  expect_equal(3);
}

// A stack that the program gave its thread.
TEST(UnwindWalk, KnowsAStackThatTheProgramMade) {
  constexpr size_t kBytes = 2 << 20;  // ThreadSanitizer wants 1 MiB for itself
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory, kBytes), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void*) -> void* {
                  compare_anew();
                  return nullptr;
                },
                nullptr),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(memory, kBytes);
  expect_equal(2);
}

StackBounds found_in_handler;
TEST(UnwindWalk, GoesFromASignalHandlerToWhatItInterrupted) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what the test does in the handler allocates, which ThreadSanitizer minds";
#endif
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { compare_anew(); };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
#if defined(__aarch64__)
  // Where the kernel returns from a handler lies in the vdso, which tells how; QEMU 7 has none.
  Module vdso;
  const uint64_t trampoline = compared.walked.calls.empty() ? 0 : compared.truth.at(2);
  if (!tables().modules.find(trampoline, &vdso)) GTEST_SKIP() << "emulated without a vdso";
#endif
  // libgcc gives the interrupted address itself; the walk's is one more than that, as if it
  // were a return address, so that one minus one is the same for all.
  EXPECT_EQ(compared.walked.end, WalkEnd::kOutermost);
  ASSERT_EQ(compared.walked.calls.size(), compared.truth.size());
  size_t different = 0;
  for (size_t i = 0; i < compared.truth.size(); ++i) {
    if (compared.walked.calls[i] == compared.truth[i]) continue;
    EXPECT_EQ(compared.walked.calls[i], compared.truth[i] + 1);
    ++different;
  }
  EXPECT_EQ(different, 1u);
}

TEST(UnwindWalk, AStackThatIsNotTheThreadsOwnHasNoBounds) {
  constexpr size_t kBytes = 64 * 1024;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::thread([&] {  // mmapped lower than the thread's stack or higher: neither is it
    const stack_t other{.ss_sp = memory, .ss_flags = 0, .ss_size = kBytes};
    sigaltstack(&other, nullptr);
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) {
      found_in_handler =
          native_bounds::find(reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
    };
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, &before);
    found_in_handler = {1, 2};
    raise(SIGUSR1);
    sigaction(SIGUSR1, &before, nullptr);
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    sigaltstack(&none, nullptr);
  })
      .join();
  munmap(memory, kBytes);
  EXPECT_EQ(found_in_handler.high, 0u);
}

TEST(UnwindWalk, StopsWhenTheVisitorHasEnough) {
  const Walked walked = walk_here(tables(), 2);
  EXPECT_EQ(walked.end, WalkEnd::kEnough);
  EXPECT_EQ(walked.calls.size(), 2u);  // and the caller
}

// Whatever a frame holds: the walk ends, within the stack.
TEST(UnwindWalk, SurvivesAStackOfGarbage) {
  alignas(16) uint64_t stack[512];
  uint64_t seed = 1;
  const auto random = [&seed] { return seed = seed * 6364136223846793005u + 1442695040888963407u; };
  for (int round = 0; round < 2000; ++round) {
    for (uint64_t& word : stack) {
      switch (random() >> 62) {
        case 0:  // an address of code
          word = reinterpret_cast<uint64_t>(&recurse) + (random() >> 50);
          break;
        case 1:  // of libc's code
          word = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")) +
                 (random() >> 48);
          break;
        case 2:  // of the stack
          word = reinterpret_cast<uint64_t>(&stack[random() >> 55]);
          break;
        default:
          word = random();
      }
    }
    const auto begin = reinterpret_cast<uint64_t>(stack);
    UnwindState state{.pc = reinterpret_cast<uint64_t>(&recurse) + (random() >> 56),
                      .sp = begin,
                      .fp = begin + (random() >> 56) * 8};
    size_t frames = 0;
    walk_native(
        tables().cache, state, begin + sizeof stack,
        [](uint64_t pc, uint64_t epoch, PackedRule* rule, uint64_t* serial) {
          return tables().look_up(pc, epoch, rule, serial);
        },
        [&](const NativeFrame& frame) {
          EXPECT_GE(frame.begin, begin);
          ++frames;
          return true;
        });
    EXPECT_LE(frames, 513u) << "each frame is above the one before it";
  }
}

// -- other compilers' flags, and objects that come and go --

class UnwindLibraries : public SmallLibraries {};

constexpr char kLayers[] =
    "int layer3(int (*f)(void), int x) { volatile int a[4]; a[x & 3] = x; return f() + a[x & 3]; "
    "}\n"
    "int layer2(int (*f)(void), int x) { return layer3(f, x + 1) * 3; }\n"
    "int layer1(int (*f)(void), int x) { return layer2(f, x + 1) + 5; }\n";

int compare_as_callback() {
  compare_anew();
  return 1;
}

TEST_F(UnwindLibraries, WithAndWithoutFramePointers) {
  for (const char* flags :
       {"-fomit-frame-pointer", "-fno-omit-frame-pointer", "-O0", "-O3 -fno-inline",
        "-O2 -fno-inline -fstack-protector-all", "-O2 -fno-inline -fstack-clash-protection"}) {
    SCOPED_TRACE(flags);
    const std::string name = "layers" + std::to_string(handles_.size());
    build(name, kLayers, flags);
    void* library = open(name);
    ASSERT_NE(library, nullptr);
    using Layer = int (*)(int (*)(), int);
    const auto layer1 = reinterpret_cast<Layer>(dlsym(library, "layer1"));
    layer1(compare_as_callback, 2);
    expect_equal(9);
  }
}

TEST_F(UnwindLibraries, WithoutCallFrameInformationTheWalkSaysThatItIsLost) {
  build("bare", kLayers, "-O2 -fno-inline -fno-asynchronous-unwind-tables -fno-unwind-tables");
  const auto layer1 = reinterpret_cast<int (*)(int (*)(), int)>(dlsym(open("bare"), "layer1"));
  layer1(compare_as_callback, 2);
  EXPECT_EQ(compared.walked.end, WalkEnd::kLost);
  // The last frame is layer3's, of which nobody knows where it ends.
  Module bare;
  ASSERT_TRUE(tables().modules.find(reinterpret_cast<uint64_t>(layer1), &bare));
  ASSERT_FALSE(compared.walked.modules.empty());
  EXPECT_EQ(compared.walked.modules.back(), bare.serial);
  EXPECT_EQ(std::count(compared.walked.modules.begin(), compared.walked.modules.end(), bare.serial),
            1);
}

// Two libraries of one size, of which each takes the other's place in turn: the addresses are the
// same and the frames are not.
TEST_F(UnwindLibraries, AnotherLibraryAtTheSamePlaceIsWalkedByItsOwnRules) {
  const auto source = [](const char* name, int locals) {
    return "int callme(int (*f)(void)) { volatile char a[" + std::to_string(locals) +
           "]; a[0] = 1; return f() + a[0]; }\nconst char* who = \"" + name + "\";\n";
  };
  build("small", source("small", 16), "-O1");
  build("large", source("large", 1600), "-O1");
  std::vector<uint64_t> places, serials;
  for (int round = 0; round < 6; ++round) {
    void* library = open(round % 2 == 0 ? "small" : "large");
    const auto call = reinterpret_cast<int (*)(int (*)())>(dlsym(library, "callme"));
    places.push_back(reinterpret_cast<uint64_t>(call));
    call(compare_as_callback);
    expect_equal(6);
    Module module;
    ASSERT_TRUE(tables().modules.find(places.back(), &module));
    EXPECT_EQ(
        std::count(compared.walked.modules.begin(), compared.walked.modules.end(), module.serial),
        1);
    serials.push_back(module.serial);
    close(library);
    tables().update();
  }
  if (places[0] != places[1]) GTEST_SKIP() << "the loader chose another place";
  std::sort(serials.begin(), serials.end());
  EXPECT_EQ(std::unique(serials.begin(), serials.end()), serials.end())
      << "each time it is another object";
}

// Threads walk while the map is renewed under them, and always get the whole truth or say that they
// are lost.
TEST_F(UnwindLibraries, WalksGoOnWhileObjectsComeAndGo) {
  build("plugin", kLayers);
  constexpr int kWalkers = 64;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> whole{0}, lost{0}, wrong{0};
  std::vector<std::thread> walkers;
  walkers.reserve(kWalkers);
  for (int i = 0; i < kWalkers; ++i) {
    walkers.emplace_back([&] {
      while (!stop) {
        const std::vector<uint64_t> truth = truth_here();
        const Walked walked = walk_here(tables());
        if (walked.end != WalkEnd::kOutermost) {
          ++lost;
          continue;
        }
        const bool same =
            std::equal(truth.begin() + 1, truth.end(), walked.calls.begin(), walked.calls.end());
        ++(same ? whole : wrong);
        std::this_thread::yield();
      }
    });
  }
  // 200 rounds, and more where the walkers hardly came to run meanwhile.
  for (int round = 0; round < 200 || (whole <= 100 && round < 20'000); ++round) {
    void* library = dlopen(path("libplugin.so").c_str(), RTLD_NOW);
    tables().update();
    dlclose(library);
    tables().update();
  }
  stop = true;
  for (std::thread& walker : walkers) walker.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(whole, 100u);
  EXPECT_LT(lost, whole);
}

}  // namespace
}  // namespace memscope::capture
