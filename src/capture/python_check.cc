#include "capture/python_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "capture/python_epochs.h"
#include "capture/python_frames.h"
#include "capture/python_resolve.h"

namespace memscope::capture {
namespace {

constexpr int kFileInput = 257,
              kEvalInput = 258;  // Include/compile.h: Py_file_input, Py_eval_input
constexpr int kNoArguments = 4;  // Include/methodobject.h: METH_NOARGS

// Reads of which the kernel says whether they may be done: write() answers EFAULT instead of
// raising SIGSEGV. (process_vm_readv would be one call less, but containers often forbid it.)
class GuardedMemory {
 public:
  GuardedMemory() { open_ = pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0; }
  ~GuardedMemory() {
    if (!open_) return;
    close(ends_[0]);
    close(ends_[1]);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  static constexpr bool kTrusted = false;
  bool open() const { return open_; }
  template <class T>
  bool load(uint64_t address, T* value) {
    if (!open_) return false;
    // A short count (the bytes straddle the end of a mapping) would misalign later reads, so the
    // pipe is given up.
    if (write(ends_[1], reinterpret_cast<const void*>(address), sizeof *value) != sizeof *value ||
        read(ends_[0], value, sizeof *value) != sizeof *value) {
      close(ends_[0]);
      close(ends_[1]);
      open_ = false;
      return false;
    }
    return true;
  }

 private:
  int ends_[2] = {-1, -1};
  bool open_;
};

// A reference that we own.
class Owned {
 public:
  Owned(const PythonApi& api, PyObject* object) : api_(api), object_(object) {}
  ~Owned() { reset(nullptr); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset(PyObject* object) {
    if (object_ != nullptr) api_.Py_DecRef(object_);
    object_ = object;
  }

 private:
  const PythonApi& api_;
  PyObject* object_;
};

struct Check {
  const PythonApi& api;
  const PythonLayout& layout;
  GuardedMemory& guarded;
  const char* problem = nullptr;
  int probes = 0;
  RawFrame frames[kMaxFrames];

  const char* name_attribute() const { return layout.minor >= 11 ? "co_qualname" : "co_name"; }

  // Whether `attribute` of `object` reads as `text`. A name that is no UTF-8 cannot be compared.
  bool same_text(PyObject* object, const char* attribute, std::string_view text) {
    Owned value(api, api.PyObject_GetAttrString(object, attribute));
    if (!value) return false;
    intptr_t size = 0;
    const char* characters = api.PyUnicode_AsUTF8AndSize(value.get(), &size);
    if (characters == nullptr) {
      api.PyErr_Clear();
      return true;
    }
    std::string_view expected(characters, static_cast<size_t>(size));
    // Only text longer than any usual name may have been cut.
    constexpr size_t kWhole = 1024;
    return text == expected || (text.size() >= kWhole && expected.starts_with(text));
  }

  enum class Depth { kPlaces, kCode, kText };

  const char* compare_frame(PyObject* frame, const RawFrame& raw, Depth depth) {
    Owned code(api, api.PyFrame_GetCode(frame));
    if (reinterpret_cast<uint64_t>(code.get()) != raw.code) {
      return "the raw frame walk found other functions than CPython's own";
    }
    Owned lasti(api, api.PyObject_GetAttrString(frame, "f_lasti"));
    if (!lasti) return "a frame without f_lasti";
    // 3.9 and 3.10 show -1 for a frame that has not begun, in whatever unit.
    const auto shown = api.PyLong_AsLongLong(lasti.get());
    const auto ours = static_cast<int64_t>(raw.instruction);
    if (shown != ours && (shown >= 0 || ours >= 0)) {
      return "the raw frame walk found other instructions than CPython's own";
    }
    if (depth == Depth::kPlaces) return nullptr;
    if (depth == Depth::kCode) return compare_code(code.get());
    char scratch[2048];
    python_stack::Resolved resolved;
    if (!resolve_frame(layout, api.PyCode_Type, raw, scratch, sizeof scratch, &resolved)) {
      return "a Python frame without a code object";
    }
    const int line = api.PyFrame_GetLineNumber(frame);
    if (static_cast<uint32_t>(std::max(line, 0)) != resolved.line) {
      return "a line read raw differs from CPython's own";
    }
    if (!same_text(code.get(), "co_filename", resolved.file) ||
        !same_text(code.get(), name_attribute(), resolved.function)) {
      return "a name read raw differs from CPython's own";
    }
    return nullptr;
  }

  // Whether the object that `code` keeps at `offset` is the very one that it shows as `attribute`.
  bool same_object(PyObject* code, uint16_t offset, const char* attribute) {
    Owned shown(api, api.PyObject_GetAttrString(code, attribute));
    uint64_t kept = 0;
    return shown && guarded.load(reinterpret_cast<uint64_t>(code) + offset, &kept) &&
           kept == reinterpret_cast<uint64_t>(shown.get());
  }

  bool same_first_traceable(PyObject* code) {
    if (layout.frame_objects) return true;
    Owned shown(api, api.PyObject_GetAttrString(code, "co_code"));
    char* bytes = nullptr;
    intptr_t size = 0;
    if (!shown || api.PyBytes_AsStringAndSize(shown.get(), &bytes, &size) != 0) return false;
    intptr_t index = 0;
    while (index < size && static_cast<uint8_t>(bytes[index]) != layout.resume_opcode) index += 2;
    int32_t kept = 0;
    return guarded.load(reinterpret_cast<uint64_t>(code) + layout.code_first_traceable, &kept) &&
           kept == index / 2;
  }

  // What resolve_frame() will follow without a guard.
  const char* compare_code(PyObject* code) {
    uint64_t type = 0;
    int32_t first_line = 0;
    Owned shown(api, api.PyObject_GetAttrString(code, "co_firstlineno"));
    const auto address = reinterpret_cast<uint64_t>(code);
    const bool same =
        guarded.load(address + kObjectType, &type) &&
        type == reinterpret_cast<uint64_t>(api.PyCode_Type) &&
        guarded.load(address + layout.code_first_line, &first_line) && shown &&
        first_line == api.PyLong_AsLongLong(shown.get()) &&
        same_object(code, layout.code_file, "co_filename") &&
        same_object(code, layout.code_function, name_attribute()) &&
        same_object(code, layout.code_line_table,
                    layout.line_table == LineTable::kLnotab ? "co_lnotab" : "co_linetable") &&
        same_first_traceable(code);
    return same ? nullptr : "CPython's code objects are not laid out as known";
  }

  // Code objects whose layout is compared: a few tell as much as all.
  static constexpr size_t kCodes = 8;

  // Compares frames[0 .. result.count) with the public chain from here on.
  const char* compare(const WalkResult& result, bool trusted) {
    PyObject* newest = api.PyEval_GetFrame();
    if (newest != nullptr) api.Py_IncRef(newest);
    Owned frame(api, newest);
    for (size_t i = 0; i < result.count; ++i) {
      if (!frame) return "the raw frame walk found more frames than CPython's own";
      const Depth depth = trusted ? Depth::kText : i < kCodes ? Depth::kCode : Depth::kPlaces;
      if (const char* found = compare_frame(frame.get(), frames[i], depth)) return found;
      frame.reset(api.PyFrame_GetBack(frame.get()));
    }
    if (frame && !result.truncated)
      return "the raw frame walk found fewer frames than CPython's own";
    return nullptr;
  }

  template <class Memory>
  WalkResult walk(Memory& memory, size_t max) {
    const auto thread = reinterpret_cast<uint64_t>(api.PyGILState_GetThisThreadState());
    if (thread == 0) return {};
    return walk_frames<true>(layout, memory, thread, frames, max);
  }

  const char* compare_guarded() {
    // Enough to see every kind of frame that is there, few enough to be quick.
    constexpr size_t kGuardedFrames = 100;
    WalkResult result = walk(guarded, kGuardedFrames);
    if (!result.readable) return "CPython's frames are not laid out as known";
    return compare(result, false);
  }

  // Whether the newest frame says that it belongs to what it does: `owner` is of _frameowner.
  const char* compare_owner(uint8_t owner) {
    if (layout.frame_objects) return nullptr;
    uint64_t frame = 0;
    uint8_t kept = 0;
    const auto thread = reinterpret_cast<uint64_t>(api.PyGILState_GetThisThreadState());
    const bool readable =
        guarded.load(thread + layout.thread_head, &frame) &&
        (!layout.head_in_cframe || guarded.load(frame + layout.cframe_head, &frame)) &&
        guarded.load(frame + layout.frame_owner, &kept);
    return readable && kept == owner ? nullptr : "CPython's frames are not laid out as known";
  }

  const char* compare_direct() {
    DirectMemory memory;
    return compare(walk(memory, kMaxFrames), true);
  }
};

// The probes of the snippet below, in order; sorted() asks for two keys.
constexpr uint8_t kProbeOwners[] = {0, kOwnedByGenerator, kOwnedByGenerator, 0, 0};
constexpr int kProbes = std::size(kProbeOwners);

Check* running = nullptr;  // set and used under the GIL, within one call of check_python_walk()

// Called from the snippet below.
PyObject* probe(PyObject*, PyObject*) {
  Check* check = running;
  if (check != nullptr && check->problem == nullptr) {
    const uint8_t owner = kProbeOwners[check->probes < kProbes ? check->probes : 0];
    ++check->probes;
    check->problem = check->compare_owner(owner);
    if (check->problem == nullptr) check->problem = check->compare_guarded();
    if (check->problem == nullptr) check->problem = check->compare_direct();
    if (check->problem != nullptr) check->api.PyErr_Clear();
  }
  // Any object will do; the snippet does not look at it.
  return check != nullptr ? check->api.PyLong_FromLong(0) : nullptr;
}

PyMethod probe_method = {"probe", &probe, kNoArguments, nullptr};

// Four kinds of frame that lie differently in memory: on the thread's frame stack, inside a
// generator and a coroutine object, and below a call from C. Code comes before a RESUME, and the
// file's name is not ASCII. (A function's name must not be: compiling it would import unicodedata.)
constexpr char kFileName[] = "<msmemscope stack check \u00e9\u4e2d>";
constexpr char kSnippet[] = R"(
def plain():
    probe()

def generator():
    kept = 1
    def inner():
        return kept
    yield probe()
    yield inner()

async def coroutine():
    probe()

def call_back():
    return sorted((2, 1), key=lambda item: probe())

plain()
list(generator())
try:
    coroutine().send(
        None)
except StopIteration:
    pass
call_back()
)";

CheckResult could_not(const char* problem) {
  return {problem, false};
}
CheckResult wrong(const char* problem) {
  return {problem, problem != nullptr};
}

CheckResult run_snippet(Check* check) {
  const PythonApi& api = check->api;
  Owned globals(api, api.PyDict_New());
  Owned function(api, api.PyCFunction_NewEx(&probe_method, nullptr, nullptr));
  if (!globals || !function ||
      api.PyDict_SetItemString(globals.get(), "__builtins__", api.PyEval_GetBuiltins()) != 0 ||
      api.PyDict_SetItemString(globals.get(), "probe", function.get()) != 0) {
    return could_not("the stack check could not be set up");
  }
  Owned file(api, api.PyUnicode_FromString(kFileName));
  if (!file) return could_not("the stack check could not be set up");
  Owned code(api, api.Py_CompileStringObject(kSnippet, file.get(), kFileInput, nullptr, -1));
  if (!code) return could_not("the stack check could not be compiled");
  running = check;
  Owned result(api, api.PyEval_EvalCode(code.get(), globals.get(), globals.get()));
  running = nullptr;
  if (check->problem != nullptr) return wrong(check->problem);
  if (!result) {
    if (api.PyErr_ExceptionMatches(*api.PyExc_KeyboardInterrupt) != 0) api.PyErr_SetInterrupt();
    return could_not("the stack check was interrupted by an exception");
  }
  if (check->probes != kProbes) return wrong("the stack check did not run to its end");
  return {};
}

CheckResult check_death(const PythonApi& api) {
  Owned file(api, api.PyUnicode_FromString(kFileName));
  if (!file) return could_not("the stack check could not be set up");
  Owned code(api, api.Py_CompileStringObject("0", file.get(), kEvalInput, nullptr, -1));
  if (!code) return could_not("the stack check could not be compiled");
  python_epochs::watch(reinterpret_cast<uint64_t>(code.get()));
  code.reset(nullptr);
  if (!python_epochs::watched_died()) return wrong("the death of a code object goes unnoticed");
  return {};
}

}  // namespace

CheckResult check_python_walk(const PythonApi& api, const PythonLayout& layout) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  api.PyErr_Fetch(&type, &value, &traceback);
  CheckResult result;
  {
    GuardedMemory memory;
    Check check{.api = api, .layout = layout, .guarded = memory};
    result = memory.open() ? wrong(check.compare_guarded())
                           : could_not("no pipe could be opened for the stack check");
    if (result.problem == nullptr) result = wrong(check.compare_direct());
    if (result.problem == nullptr) result = run_snippet(&check);
    if (result.problem == nullptr) result = check_death(api);
  }
  api.PyErr_Clear();
  api.PyErr_Restore(type, value, traceback);
  return result;
}

}  // namespace memscope::capture
