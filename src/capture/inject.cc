#include "capture/inject.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "capture/settings.h"

namespace memscope::capture::inject {

namespace {

struct PyObject;
using AuditHook = int (*)(const char* event, PyObject* arguments, void* data);

// Of the C API, unchanged since CPython 3.5 (docs.python.org/3/c-api/memory.html).
struct Allocator {
  void* context;
  void* (*allocate)(void* context, size_t size);
  void* (*allocate_zeroed)(void* context, size_t count, size_t size);
  void* (*reallocate)(void* context, void* memory, size_t size);
  void (*release)(void* context, void* memory);
};
constexpr int kRawDomain = 0;  // PYMEM_DOMAIN_RAW

// The few functions used, all of CPython's stable ABI but the first three
// (docs.python.org/3/c-api), found at run time: one binary for every CPython.
struct Python {
  int (*PySys_AddAuditHook)(AuditHook hook, void* data);
  void (*PyMem_GetAllocator)(int domain, Allocator* allocator);
  void (*PyMem_SetAllocator)(int domain, Allocator* allocator);
  void (*PyErr_Fetch)(PyObject** type, PyObject** value, PyObject** traceback);
  void (*PyErr_Restore)(PyObject* type, PyObject* value, PyObject* traceback);
  int (*PyErr_ExceptionMatches)(PyObject* type);
  void (*PyErr_Clear)();
  void (*PyErr_SetInterrupt)();
  PyObject* (*Py_CompileString)(const char* source, const char* file, int start);
  PyObject* (*PyEval_EvalCode)(PyObject* code, PyObject* globals, PyObject* locals);
  PyObject* (*PyEval_GetBuiltins)();
  PyObject* (*PyDict_New)();
  int (*PyDict_SetItemString)(PyObject* dict, const char* key, PyObject* value);
  PyObject* (*PyUnicode_DecodeFSDefault)(const char* text);
  void (*Py_DecRef)(PyObject* object);
  PyObject** PyExc_KeyboardInterrupt;
};

constexpr int kFileInput = 257;  // Py_file_input
constexpr char kRunEvent[] = "cpython.run_";
constexpr char kLastEvent[] = "cpython._PySys_ClearAuditHooks";

// Waits for torch, then loads the package by path. Exceptions end here, in one line on stderr; only
// a Ctrl-C goes on. `at_exit` is what the package would have given to atexit, had it come this
// early: msmemscope/__init__.py finds it in its spec.
constexpr char kBootstrap[] = R"(
def begin(directory, at_once):
    import atexit
    import sys

    at_exit = []

    def run_at_exit():
        for function in at_exit:
            function()

    def package_spec():
        import importlib.util
        import os.path
        package = os.path.join(directory, 'msmemscope')
        spec = importlib.util.spec_from_file_location(
            'msmemscope', os.path.join(package, '__init__.py'),
            submodule_search_locations=[package])
        spec.loader_state = at_exit
        return spec

    def load():
        try:
            if 'msmemscope' not in sys.modules:
                import importlib.util
                spec = package_spec()
                module = importlib.util.module_from_spec(spec)
                sys.modules['msmemscope'] = module
                try:
                    spec.loader.exec_module(module)
                except BaseException:
                    sys.modules.pop('msmemscope', None)
                    raise
            import importlib
            importlib.import_module('msmemscope._inject').begin()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            import os
            text = ' '.join(str(error).split())
            line = 'msmemscope: this program is not traced: cannot load the Python package from %s: %s: %s\n' % (
                directory, type(error).__name__, text)
            try:
                os.write(2, line.encode('utf-8', 'backslashreplace'))
            except OSError:
                pass

    class WaitForTorch:
        def find_spec(self, name, path=None, target=None):
            if name != 'torch' and name != 'msmemscope':
                return None
            for index, finder in enumerate(sys.meta_path):
                if finder is self:
                    del sys.meta_path[index]
                    break
            if name == 'msmemscope':
                return package_spec()
            load()
            # The package has put a finder of its own in our place, which importlib has passed.
            for finder in list(sys.meta_path):
                find_spec = getattr(finder, 'find_spec', None)
                spec = find_spec(name, path, target) if find_spec is not None else None
                if spec is not None:
                    return spec
            return None

    atexit.register(run_at_exit)
    if at_once or 'torch' in sys.modules or 'msmemscope' in sys.modules:
        load()
    else:
        sys.meta_path.insert(0, WaitForTorch())

begin(directory, 'at_once' in globals())
)";

Python python;
std::atomic<bool> done{false};
char package_directory[4096];

template <typename Function>
bool find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

bool find_python() {
  return find(python.PySys_AddAuditHook, "PySys_AddAuditHook") &&
         find(python.PyMem_GetAllocator, "PyMem_GetAllocator") &&
         find(python.PyMem_SetAllocator, "PyMem_SetAllocator") &&
         find(python.PyErr_Fetch, "PyErr_Fetch") && find(python.PyErr_Restore, "PyErr_Restore") &&
         find(python.PyErr_ExceptionMatches, "PyErr_ExceptionMatches") &&
         find(python.PyErr_Clear, "PyErr_Clear") &&
         find(python.PyErr_SetInterrupt, "PyErr_SetInterrupt") &&
         find(python.Py_CompileString, "Py_CompileString") &&
         find(python.PyEval_EvalCode, "PyEval_EvalCode") &&
         find(python.PyEval_GetBuiltins, "PyEval_GetBuiltins") &&
         find(python.PyDict_New, "PyDict_New") &&
         find(python.PyDict_SetItemString, "PyDict_SetItemString") &&
         find(python.PyUnicode_DecodeFSDefault, "PyUnicode_DecodeFSDefault") &&
         find(python.Py_DecRef, "Py_DecRef") &&
         find(python.PyExc_KeyboardInterrupt, "PyExc_KeyboardInterrupt");
}

void say(const char* line) {
  const ssize_t written = write(STDERR_FILENO, line, strlen(line));
  (void)written;  // nobody to tell
}

// New references; null on an error that Python has noted.
PyObject* run_bootstrap() {
  PyObject* globals = python.PyDict_New();
  PyObject* directory = python.PyUnicode_DecodeFSDefault(package_directory);
  PyObject* code = python.Py_CompileString(kBootstrap, "<msmemscope>", kFileInput);
  PyObject* result = nullptr;
  if (globals != nullptr && directory != nullptr && code != nullptr &&
      python.PyDict_SetItemString(globals, "__builtins__", python.PyEval_GetBuiltins()) == 0 &&
      python.PyDict_SetItemString(globals, "directory", directory) == 0 &&
      (!settings.host || python.PyDict_SetItemString(globals, "at_once", directory) == 0)) {
    result = python.PyEval_EvalCode(code, globals, globals);
  }
  python.Py_DecRef(code);  // null is allowed
  python.Py_DecRef(directory);
  python.Py_DecRef(globals);
  return result;
}

// Called with the GIL, by the thread that is about to run the program.
void begin_waiting() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  python.PyErr_Fetch(&type, &value, &traceback);
  PyObject* result = run_bootstrap();
  if (result != nullptr) {
    python.Py_DecRef(result);
  } else if (python.PyErr_ExceptionMatches(*python.PyExc_KeyboardInterrupt) != 0) {
    python.PyErr_Clear();
    python.PyErr_SetInterrupt();
  } else {
    python.PyErr_Clear();
    say("msmemscope: this program is not traced: Python could not run the loader\n");
  }
  python.PyErr_Restore(type, value, traceback);
}

// CPython keeps our hook in a block of its raw allocator. We come before Python has read its
// command line: with -X dev or PYTHONMALLOC=debug it has another raw allocator by the time it frees
// the block (3.9 to 3.14), and that one ends the process over a block that it does not know. So the
// block's address is noted, and where the allocators differ the last ones let the block be.
Allocator first_allocator, last_allocator;
void* hook_block = nullptr;

void* allocate_noted(void*, size_t size) {
  hook_block = first_allocator.allocate(first_allocator.context, size);
  return hook_block;
}

void* allocate(void*, size_t size) {
  return last_allocator.allocate(last_allocator.context, size);
}
void* allocate_zeroed(void*, size_t count, size_t size) {
  return last_allocator.allocate_zeroed(last_allocator.context, count, size);
}
void* reallocate(void*, void* memory, size_t size) {
  return last_allocator.reallocate(last_allocator.context, memory, size);
}
void release_others(void*, void* memory) {
  if (memory != hook_block) last_allocator.release(last_allocator.context, memory);
}

int add_hook(AuditHook hook) {
  python.PyMem_GetAllocator(kRawDomain, &first_allocator);
  Allocator noting = first_allocator;
  noting.allocate = allocate_noted;
  python.PyMem_SetAllocator(kRawDomain, &noting);
  // Refused only by an earlier audit hook, which is then in its right.
  const int refused = python.PySys_AddAuditHook(hook, nullptr);
  python.PyMem_SetAllocator(kRawDomain, &first_allocator);
  return refused;
}

void keep_hook_block() {
  python.PyMem_GetAllocator(kRawDomain, &last_allocator);
  if (hook_block == nullptr || last_allocator.release == first_allocator.release) return;
  Allocator sparing{nullptr, allocate, allocate_zeroed, reallocate, release_others};
  python.PyMem_SetAllocator(kRawDomain, &sparing);
}

// 0 lets the audited operation go on.
int on_audit(const char* event, PyObject*, void*) {
  if (done.load(std::memory_order_relaxed)) {
    if (strcmp(event, kLastEvent) == 0) keep_hook_block();
    return 0;
  }
  if (strncmp(event, kRunEvent, sizeof kRunEvent - 1) == 0) {
    if (!done.exchange(true)) begin_waiting();
  } else if (strcmp(event, kLastEvent) == 0) {
    keep_hook_block();
  }
  return 0;
}

}  // namespace

bool on_load() noexcept {
  const char* directory = getenv("MSMEMSCOPE_PYTHONPATH");
  if (directory == nullptr || strlen(directory) >= sizeof package_directory) return false;
  if (!find_python()) return false;
  strcpy(package_directory, directory);  // checked above
  return add_hook(on_audit) == 0;
}

}  // namespace memscope::capture::inject
