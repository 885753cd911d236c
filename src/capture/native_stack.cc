#include "capture/native_stack.h"

#include <dlfcn.h>
#include <errno.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "capture/agent_state.h"
#include "capture/elf_patch.h"
#include "capture/lane.h"
#include "capture/native_bounds.h"
#include "capture/own_pages.h"
#include "capture/python_frames.h"
#include "capture/unwind_walk.h"
#include "capture/walk_memo.h"

namespace memscope::capture::native_stack {
namespace {

// The tables below are read on the hot path and constant-initialised.
constinit ModuleMap modules;
constinit UnwindCache cache;
constinit WalkMemo memos[kLanes];  // by lane; of those never used no page is touched
// What a lane's memo was made a summary beside: the key of a stack depends on these too.
struct Seen {
  uint64_t python_hash = 0, python_count = 0, limit = 0;
  bool operator==(const Seen&) const = default;
};
struct alignas(64) LaneSeen : Seen {
  using Seen::operator=;
};
constinit LaneSeen last_seen[kLanes];
std::atomic<uint64_t> own_module{0};
std::atomic<uint32_t> closing{0};  // threads inside dlclose
std::atomic<bool> look_wanted{false};
// Where the interpreter's loop lies: for the versions that keep nothing of it on the C stack.
std::atomic<uint64_t> loop_begin{0}, loop_end{0};

#ifdef DLFO_EH_SEGMENT_TYPE
// glibc 2.35 and newer: the loader's own lock-free answer. It guards the reading of a module's
// information against an unloading that nobody told us of.
using FindObject = int (*)(void* pc, dl_find_object* result);
std::atomic<FindObject> find_object{nullptr};

void find_the_finder() {
  find_object = reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
}
bool still_loaded(uint64_t pc, const Module& module) {
  const FindObject find = find_object.load(std::memory_order_relaxed);
  if (find == nullptr) return true;
  dl_find_object found{};
  return find(reinterpret_cast<void*>(pc), &found) == 0 &&
         found.dlfo_eh_frame == static_cast<const void*>(module.cfi.header);
}
#else
void find_the_finder() {}
bool still_loaded(uint64_t, const Module&) {
  return true;
}
#endif

// The first sight of an address.
bool look_up(uint64_t pc, uint64_t epoch, PackedRule* rule, uint64_t* serial) noexcept {
  Module module;
  if (!modules.find(pc, &module) || !still_loaded(pc, module)) {
    look_wanted.store(true, std::memory_order_relaxed);
    return false;
  }
  rule->word = pack_rule(find_unwind_rule(module.cfi, pc));
  *serial = module.serial;
  cache.insert(pc, epoch, rule->word, *serial);
  return true;
}

void find_the_loop() {
  if (loop_begin.load(std::memory_order_relaxed) != 0) return;
  const auto entry = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault"));
  Module module;
  uint64_t begin = 0, end = 0;
  if (entry == 0 || !modules.find(entry, &module) ||
      !find_function(module.cfi, entry, &begin, &end)) {
    return;
  }
  loop_end.store(end, std::memory_order_relaxed);
  loop_begin.store(begin, std::memory_order_relaxed);
}

void look() noexcept {
  if (modules.update()) cache.forget_all();
}

void changed() noexcept {
  if (!modules.attached()) return;
  look();
  find_the_loop();
}

// -- dlclose: the moment from which addresses may mean something else --

void* original_dlclose = nullptr;

class Closing {
 public:
  Closing() { closing.fetch_add(1, std::memory_order_seq_cst); }
  ~Closing() {
    const int saved_errno = errno;
    look();
    closing.fetch_sub(1, std::memory_order_seq_cst);
    errno = saved_errno;
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
};

int on_dlclose(void* handle) {
  const Closing scope;  // released too where a destructor of the object's leaves by an exception
  using Function = int (*)(void*);
  return reinterpret_cast<Function>(__atomic_load_n(&original_dlclose, __ATOMIC_RELAXED))(handle);
}

const SymbolHook kHooks[] = {
    {"dlclose", reinterpret_cast<void*>(&on_dlclose), &original_dlclose, nullptr}};

// -- the walk --

// The Python frames of an event, taken in groups: those that one run of the interpreter's loop
// runs, up to the mark that says where its native frame is.
class PythonGroups {
 public:
  PythonGroups(const RawFrame* frames, size_t count) : frames_(frames), count_(count) { find(); }

  bool more() const { return begin_ < count_; }
  // The native frame of the loop that runs the next group.
  bool runs_in(const NativeFrame& frame) const {
    if (!marked()) return false;
    if (place_ != 0) return place_ - frame.begin < frame.end - frame.begin;
    const uint64_t begin = loop_begin.load(std::memory_order_relaxed);
    return begin != 0 && frame.pc - begin < loop_end.load(std::memory_order_relaxed) - begin;
  }
  // Its loop lies further in than this frame: it was missed.
  bool is_before(const NativeFrame& frame) const {
    return marked() && place_ != 0 && place_ < frame.begin;
  }
  // Calls visit(frame) for the next group's, and goes on to the one after it.
  template <typename Visit>
  void take(Visit visit) {
    for (size_t i = begin_; i < mark_; ++i) visit(frames_[i]);
    begin_ = mark_ < count_ ? mark_ + 1 : count_;
    find();
  }

 private:
  bool marked() const { return mark_ < count_; }
  void find() {
    mark_ = begin_;
    while (mark_ < count_ && (frames_[mark_].code & kEntryMark) == 0) ++mark_;
    place_ = marked() ? frames_[mark_].code & ~kEntryMark : 0;
  }

  const RawFrame* frames_;
  size_t count_, begin_ = 0, mark_ = 0;
  uint64_t place_ = 0;
};

// Walks the native frames, innermost first, calling native(frame) for those that are kept and
// python(raw) for the Python frames where they belong; the groups left over stay in `groups`.
template <typename Native, typename Python>
[[gnu::always_inline]] inline WalkEnd walk_merged(WalkMemo& memo, const UnwindState& from,
                                                  uint64_t stack_end, uint32_t limit,
                                                  PythonGroups* groups, Native native,
                                                  Python python) {
  const uint64_t own = own_module.load(std::memory_order_relaxed);
  uint32_t kept = 0;
  const auto visit = [&](const NativeFrame& frame) __attribute__((always_inline)) {
    if (frame.module == own) return true;
    while (groups->is_before(frame)) groups->take(python);
    if (groups->runs_in(frame)) {
      groups->take(python);
      return true;
    }
    return native(frame) && ++kept < limit;
  };
  return memo.walk(cache, from, stack_end, look_up, visit);
}

// The end of the stack that `sp` is on; 0 where no native frames can be read now.
uint64_t stack_end(Lane& lane, uint64_t sp) {
  // A closing that began before this thread came to run new code at an old place is seen here: the
  // loader's lock lies between the two.
  if (closing.load(std::memory_order_acquire) != 0) return 0;
  if (__builtin_expect(lane.own_stack.holds(sp), 1)) return lane.own_stack.high;
  constexpr uint8_t kTries = 8;  // a thread may begin its first event on another stack than its own
  if (lane.own_stack.high != 0 || lane.own_stack_tries >= kTries) return 0;
  ++lane.own_stack_tries;
  lane.own_stack = native_bounds::find(sp);
  return lane.own_stack.high;
}

// Merges in place: the Python frames are moved to the end of `frames`, and what is merged grows
// from the front. Returns how many there are.
size_t merge(WalkMemo& memo, const UnwindState& from, uint64_t end, uint32_t limit,
             RawFrame* frames, size_t python_count, size_t max) {
  RawFrame* python = frames + (max - python_count);
  std::memmove(python, frames, python_count * sizeof(RawFrame));
  PythonGroups groups(python, python_count);
  size_t count = 0, taken = 0;
  const auto put_python = [&](const RawFrame& frame) {
    frames[count++] = frame;
    ++taken;
  };
  const auto put_native = [&](const NativeFrame& frame) {
    // The last free place is kept for the mark.
    if (count + 1 + (python_count - taken) >= max) return false;
    frames[count++] = {kNativeFrame | frame.pc, frame.module};
    return true;
  };
  const WalkEnd walk = end == 0
                           ? WalkEnd::kLost
                           : walk_merged(memo, from, end, limit, &groups, put_native, put_python);
  if (walk == WalkEnd::kLost && count + (python_count - taken) < max) {
    frames[count++] = {kNativeFrame, 0};
  }
  while (groups.more()) groups.take(put_python);
  return count;
}

const char* make_ready() {
  static bool added = false;
  if (!modules.attached()) {
    if (!native_bounds::prepare()) return "the loader does not tell where the first stack ends";
    auto* memory = own_pages<char>(memory_bytes());
    if (memory == nullptr) return "no memory for their tables";
    cache.attach(memory + ModuleMap::kBytes);
    find_the_finder();
    modules.attach(memory);
  }
  if (!added && !elf_patch::add(kHooks, changed)) return "too many functions are watched";
  added = true;
  elf_patch::refresh();
  changed();
  Module own;
  if (modules.find(reinterpret_cast<uint64_t>(&on_dlclose), &own)) own_module = own.serial;
  return nullptr;
}

}  // namespace

size_t memory_bytes() noexcept {
  return ModuleMap::kBytes + UnwindCache::kBytes;
}

bool prepared() noexcept {
  return modules.attached();
}

const char* prepare(uint32_t limit) noexcept {
  // Whoever is second does not wait for the first: one of them may hold the loader's lock, for
  // which the other waits.
  static std::atomic<bool> under_way{false};
  if (limit != 0 && !under_way.exchange(true, std::memory_order_acquire)) {
    const char* problem = make_ready();
    under_way.store(false, std::memory_order_release);
    if (problem != nullptr) limit = 0;
    state.native_frames.store(limit, std::memory_order_release);
    return problem;
  }
  state.native_frames.store(modules.attached() ? limit : 0, std::memory_order_release);
  return nullptr;
}

uint32_t node(Lane& lane, const CallerState& caller) noexcept {
  UnwindState here{.pc = caller.pc, .sp = caller.sp, .fp = caller.fp};
  if (caller.pc == 0) MEMSCOPE_UNWIND_HERE(here);
  StackTables& tables = lane.stacks;
  const uint32_t limit = state.native_frames.load(std::memory_order_acquire);
  uint64_t python_hash = 0;
  bool python_truncated = false;
  const size_t max = tables.max_frames;
  const size_t python_count =
      python_stack::walk_with_entries(tables.walked, max, &python_hash, &python_truncated);
  const uint64_t end = stack_end(lane, here.sp);
  WalkMemo& memo = memos[lane.index - 1];
  Seen& seen = last_seen[lane.index - 1];
  const Seen now{python_hash, python_count, limit};
  uint64_t key = 0;
  if (end != 0 && seen == now) key = memo.summary(cache, here, end);
  if (key == 0) {
    StackHash hash;
    hash.add(python_hash, python_count, 0);
    WalkEnd walk = WalkEnd::kLost;
    if (end != 0) {
      PythonGroups groups(tables.walked, python_count);
      walk = walk_merged(
          memo, here, end, limit, &groups,
          [&](const NativeFrame& frame) {
            hash.add(frame.pc, frame.module, 0);
            return true;
          },
          [](const RawFrame&) {});
    }
    key = hash.finish(walk == WalkEnd::kLost);
    if (key == 0) key = 1;
    if (walk == WalkEnd::kOutermost) {
      seen = now;
      memo.summarize(key);
    }
  }
  if (const uint32_t known = tables.raw.find(key)) return known;
  const size_t count = merge(memo, here, end, limit, tables.walked, python_count, max);
  return count == 0 ? 0 : define_stack(lane, count, key);
}

bool module_of(const RawFrame& frame, Module* out) noexcept {
  const uint64_t pc = frame.code & ~kNativeFrame;
  for (int attempt = 0; attempt < 100; ++attempt) {  // updates overtake only now and then
    if (modules.find(pc, out)) return out->serial == frame.instruction;
  }
  return false;
}

bool for_each_module(void (*visit)(const Module&, void* data), void* data) noexcept {
  return modules.attached() && modules.for_each([&](const Module& module) { visit(module, data); });
}

void poll(bool always) noexcept {
  if (!modules.attached()) return;
  const bool wanted = look_wanted.exchange(false, std::memory_order_relaxed);
  if ((wanted || always) && modules.loader_changed()) changed();
}

void reset_after_fork() noexcept {
  closing.store(0, std::memory_order_relaxed);
  if (modules.reset_after_fork()) cache.forget_all();
}

}  // namespace memscope::capture::native_stack
