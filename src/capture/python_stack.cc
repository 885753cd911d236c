#include "capture/python_stack.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "capture/python_api.h"
#include "capture/python_check.h"
#include "capture/python_epochs.h"
#include "capture/python_frames.h"
#include "capture/python_layout.h"
#include "capture/python_resolve.h"

namespace memscope::capture::python_stack {
namespace {

using Walk = WalkResult (*)(uint64_t thread, RawFrame* frames, size_t max);

template <size_t kLayout, bool kEpochs, bool kEntries>
WalkResult walk_one_version(uint64_t thread, RawFrame* frames, size_t max) {
  DirectMemory memory;
  return walk_frames<kEpochs, kEntries>(kPythonLayouts[kLayout], memory, thread, frames, max);
}

// One walk for each layout, its offsets compiled in: half the instructions of one that loads them.
template <bool kEpochs, bool kEntries = false, size_t... kLayouts>
constexpr std::array<Walk, sizeof...(kLayouts)> make_walks(std::index_sequence<kLayouts...>) {
  return {&walk_one_version<kLayouts, kEpochs, kEntries>...};
}
constexpr auto kLayoutIndexes = std::make_index_sequence<std::size(kPythonLayouts)>{};
constexpr auto kWalks = make_walks<false>(kLayoutIndexes);
constexpr auto kWalksWithEpochs = make_walks<true>(kLayoutIndexes);
constexpr auto kWalksWithEntries = make_walks<true, true>(kLayoutIndexes);

// Written under the GIL before `state` is stored, constant from then on.
struct Interpreter {
  PythonApi api{};
  const PythonLayout* layout = nullptr;
  Walk walk = nullptr;
  Walk walk_with_epochs = nullptr;
  Walk walk_with_entries = nullptr;
  char version[32] = "";
};
Interpreter interpreter;

enum class State : uint8_t { kUnchecked, kOn, kRefused, kFinalized };
std::atomic<State> state{State::kUnchecked};
const char* refusal = nullptr;

const char* find_layout() {
  if (const char* problem = find_python(&interpreter.api)) return problem;
  int major = 0, minor = 0;
  std::string_view number;
  if (!parse_python_version(interpreter.api.Py_GetVersion(), &major, &minor, &number)) {
    return "the interpreter does not tell its version";
  }
  const size_t size = number.copy(interpreter.version, sizeof interpreter.version - 1);
  interpreter.version[size] = '\0';
  interpreter.layout = python_layout(major, minor);
  if (interpreter.layout == nullptr) {
    return "the frame layout of this CPython version is not known (3.9 to 3.14 are)";
  }
  interpreter.walk = kWalks[interpreter.layout - kPythonLayouts];
  interpreter.walk_with_epochs = kWalksWithEpochs[interpreter.layout - kPythonLayouts];
  interpreter.walk_with_entries = kWalksWithEntries[interpreter.layout - kPythonLayouts];
  // "3.13.0 experimental free-threading build (…)", "3.14.0 free-threading build (…)"
  if (std::strstr(interpreter.api.Py_GetVersion(), "free-threading") != nullptr) {
    return "free-threaded CPython is not supported yet";
  }
  if (minor >= 13) {
    if (interpreter.api._PyRuntime == nullptr) return "the interpreter has no _PyRuntime";
    return compare_with_debug_offsets(*interpreter.layout, interpreter.api._PyRuntime);
  }
  return nullptr;
}

CheckResult check_once() {
  constexpr bool kFinal = true, kTransient = false;
  if (const char* problem = find_layout()) {
    // A process that has no interpreter yet may still load one.
    return {problem, interpreter.api.Py_GetVersion != nullptr};
  }
  const PythonApi& api = interpreter.api;
  if (api.Py_IsInitialized() == 0) return {"the interpreter is not initialised", kTransient};
  if (api.PyGILState_Check() == 0 || api.PyGILState_GetThisThreadState() == nullptr) {
    return {"the stack check was called without the GIL", kTransient};
  }
  if (const char* problem = python_epochs::wrap_dealloc(api, interpreter.layout->minor)) {
    return {problem, kFinal};
  }
  const CheckResult result = check_python_walk(api, *interpreter.layout);
  if (result.problem != nullptr) python_epochs::unwrap_dealloc();
  return result;
}

// What a cache by frame_key() would have answered: the text that each key had when it was first
// seen. For text() alone, under the GIL.
class SeenKeys {
 public:
  // False where `key` had another text before.
  bool agrees(uint64_t key, uint64_t text_hash) {
    Entry& entry = entries_[key % std::size(entries_)];
    if (entry.key == key) return entry.text_hash == text_hash;
    entry = {key, text_hash};
    return true;
  }

 private:
  struct Entry {
    uint64_t key, text_hash;
  };
  Entry entries_[4096];
};
SeenKeys seen_keys;

}  // namespace

const char* check() {
  switch (state.load(std::memory_order_acquire)) {
    case State::kOn:
      return nullptr;
    case State::kRefused:
      return refusal;
    case State::kFinalized:
      return "the interpreter is finalizing";
    case State::kUnchecked:
      break;
  }
  const CheckResult result = check_once();
  if (result.problem != nullptr && !result.final) return result.problem;
  refusal = result.problem;
  // finalizing() may have come in between: it stands.
  State unchecked = State::kUnchecked;
  state.compare_exchange_strong(unchecked, result.problem == nullptr ? State::kOn : State::kRefused,
                                std::memory_order_acq_rel);
  if (result.problem != nullptr) return result.problem;
  return on() ? nullptr : "the interpreter is finalizing";
}

bool on() {
  return state.load(std::memory_order_relaxed) == State::kOn;
}

void finalizing() {
  state.store(State::kFinalized, std::memory_order_release);
  python_epochs::unwrap_dealloc();
}

size_t walk(RawFrame* frames, size_t max, uint64_t* hash, bool* truncated) noexcept {
  *hash = 0;
  *truncated = false;
  if (state.load(std::memory_order_acquire) != State::kOn) return 0;
  // A second net below finalizing(): CPython takes this flag down before it frees thread states.
  if (interpreter.api.Py_IsInitialized() == 0) return 0;
  PyThreadState* thread = interpreter.api.PyGILState_GetThisThreadState();
  if (thread == nullptr) return 0;
  const Walk walk = python_epochs::any_death() ? interpreter.walk_with_epochs : interpreter.walk;
  const WalkResult result = walk(reinterpret_cast<uint64_t>(thread), frames, max);
  *hash = result.hash;
  *truncated = result.truncated;
  return result.count;
}

size_t walk_with_entries(RawFrame* frames, size_t max, uint64_t* hash, bool* truncated) noexcept {
  *hash = 0;
  *truncated = false;
  if (state.load(std::memory_order_acquire) != State::kOn) return 0;
  if (interpreter.api.Py_IsInitialized() == 0) return 0;
  PyThreadState* thread = interpreter.api.PyGILState_GetThisThreadState();
  if (thread == nullptr) return 0;
  const WalkResult result =
      interpreter.walk_with_entries(reinterpret_cast<uint64_t>(thread), frames, max);
  *hash = result.hash;
  *truncated = result.truncated;
  return result.count;
}

uint64_t frame_key(const RawFrame& frame) noexcept {
  StackHash hash;
  hash.add(frame.code, frame.instruction, python_epochs::epoch_of(frame.code));
  return hash.finish(false);
}

bool resolve(const RawFrame& frame, char* scratch, size_t scratch_size, Resolved* out) noexcept {
  *out = {};
  if (state.load(std::memory_order_acquire) != State::kOn) return false;
  if (!resolve_frame(*interpreter.layout, interpreter.api.PyCode_Type, frame, scratch, scratch_size,
                     out)) {
    return false;
  }
  python_epochs::know(frame.code);
  return true;
}

const char* version() {
  return interpreter.version;
}

size_t text(char* out, size_t size) noexcept {
  RawFrame frames[kMaxFrames];
  uint64_t hash;
  bool truncated;
  const size_t count = walk(frames, kMaxFrames, &hash, &truncated);
  size_t needed = 0;
  auto put = [&](std::string_view part) {
    if (needed < size) part.copy(out + needed, size - needed);
    needed += part.size();
  };
  for (size_t i = 0; i < count; ++i) {
    char scratch[8192];
    Resolved resolved;
    if (!resolve(frames[i], scratch, sizeof scratch, &resolved)) continue;
    char line[16];
    const int digits = std::snprintf(line, sizeof line, ":%u:", resolved.line);
    const std::hash<std::string_view> hash_text;
    const uint64_t text_hash = folded_product(hash_text(resolved.file) ^ resolved.line,
                                              hash_text(resolved.function) ^ kHashCode);
    if (!seen_keys.agrees(frame_key(frames[i]), text_hash)) put("stale key:");
    put(resolved.file);
    put({line, static_cast<size_t>(digits)});
    put(resolved.function);
    put("\n");
  }
  if (size > 0) out[needed < size ? needed : size - 1] = '\0';
  return needed;
}

}  // namespace memscope::capture::python_stack
