#include "capture/python_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
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
  const char* problem = nullptr;
  int probes = 0;
  RawFrame frames[kMaxFrames];

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

  const char* compare_frame(PyObject* frame, const RawFrame& raw, bool resolve) {
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
    if (!resolve) return nullptr;
    char scratch[2048];
    python_stack::Resolved resolved;
    if (!resolve_frame(layout, api.PyCode_Type, raw, scratch, sizeof scratch, &resolved)) {
      return "a Python frame without a code object";
    }
    const int line = api.PyFrame_GetLineNumber(frame);
    if (static_cast<uint32_t>(std::max(line, 0)) != resolved.line) {
      return "a line read raw differs from CPython's own";
    }
    const char* name = layout.minor >= 11 ? "co_qualname" : "co_name";
    if (!same_text(code.get(), "co_filename", resolved.file) ||
        !same_text(code.get(), name, resolved.function)) {
      return "a name read raw differs from CPython's own";
    }
    return nullptr;
  }

  // Compares frames[0 .. result.count) with the public chain from here on.
  const char* compare(const WalkResult& result, bool resolve) {
    PyObject* newest = api.PyEval_GetFrame();
    if (newest != nullptr) api.Py_IncRef(newest);
    Owned frame(api, newest);
    for (size_t i = 0; i < result.count; ++i) {
      if (!frame) return "the raw frame walk found more frames than CPython's own";
      if (const char* found = compare_frame(frame.get(), frames[i], resolve)) return found;
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
    GuardedMemory memory;
    if (!memory.open()) return "no pipe could be opened for the stack check";
    WalkResult result = walk(memory, kGuardedFrames);
    if (!result.readable) return "CPython's frames are not laid out as known";
    return compare(result, false);
  }

  const char* compare_direct() {
    DirectMemory memory;
    return compare(walk(memory, kMaxFrames), true);
  }
};

Check* running = nullptr;  // set and used under the GIL, within one call of check_python_walk()

// Called from the snippet below.
PyObject* probe(PyObject*, PyObject*) {
  Check* check = running;
  if (check != nullptr && check->problem == nullptr) {
    ++check->probes;
    check->problem = check->compare_guarded();
    if (check->problem == nullptr) check->problem = check->compare_direct();
    if (check->problem != nullptr) check->api.PyErr_Clear();
  }
  // Any object will do; the snippet does not look at it.
  return check != nullptr ? check->api.PyLong_FromLong(0) : nullptr;
}

PyMethod probe_method = {"probe", &probe, kNoArguments, nullptr};

// Four kinds of frame that lie differently in memory: on the thread's frame stack, inside a
// generator and a coroutine object, and below a call from C.
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
constexpr int kProbes = 5;  // sorted() asks for two keys

const char* run_snippet(Check* check) {
  const PythonApi& api = check->api;
  Owned globals(api, api.PyDict_New());
  Owned function(api, api.PyCFunction_NewEx(&probe_method, nullptr, nullptr));
  if (!globals || !function ||
      api.PyDict_SetItemString(globals.get(), "__builtins__", api.PyEval_GetBuiltins()) != 0 ||
      api.PyDict_SetItemString(globals.get(), "probe", function.get()) != 0) {
    return "the stack check could not be set up";
  }
  Owned code(api, api.Py_CompileString(kSnippet, "<msmemscope stack check>", kFileInput));
  if (!code) return "the stack check could not be compiled";
  running = check;
  Owned result(api, api.PyEval_EvalCode(code.get(), globals.get(), globals.get()));
  running = nullptr;
  if (check->problem != nullptr) return check->problem;
  if (!result) return "the stack check was interrupted by an exception";
  if (check->probes != kProbes) return "the stack check did not run to its end";
  return nullptr;
}

const char* check_death(const PythonApi& api) {
  Owned code(api, api.Py_CompileString("0", "<msmemscope stack check>", kEvalInput));
  if (!code) return "the stack check could not be compiled";
  python_epochs::watch(reinterpret_cast<uint64_t>(code.get()));
  code.reset(nullptr);
  if (!python_epochs::watched_died()) return "the death of a code object goes unnoticed";
  return nullptr;
}

}  // namespace

const char* check_python_walk(const PythonApi& api, const PythonLayout& layout) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  api.PyErr_Fetch(&type, &value, &traceback);
  Check check{.api = api, .layout = layout};
  const char* problem = check.compare_guarded();
  if (problem == nullptr) problem = check.compare_direct();
  if (problem == nullptr) problem = run_snippet(&check);
  if (problem == nullptr) problem = check_death(api);
  api.PyErr_Clear();
  api.PyErr_Restore(type, value, traceback);
  return problem;
}

}  // namespace memscope::capture
