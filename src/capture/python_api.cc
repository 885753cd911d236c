#include "capture/python_api.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace memscope::capture {
namespace {

struct LocalPython {
  char path[4096] = "";
};

// dl_iterate_phdr's callback runs under a loader lock, so it notes the name only.
int note_libpython(dl_phdr_info* info, size_t, void* found) {
  const char* path = info->dlpi_name;
  if (path == nullptr) return 0;
  const char* slash = std::strrchr(path, '/');
  const char* name = slash != nullptr ? slash + 1 : path;
  auto* local = static_cast<LocalPython*>(found);
  if (std::strncmp(name, "libpython3.", 11) != 0 || std::strlen(path) >= sizeof local->path) {
    return 0;
  }
  std::strcpy(local->path, path);
  return 1;
}

// The handle stays open: what we point to must stay mapped. (RTLD_DEFAULT is a null pointer.)
bool find_interpreter(void** handle) {
  *handle = RTLD_DEFAULT;
  if (dlsym(*handle, "Py_GetVersion") != nullptr) return true;
  LocalPython local;
  if (dl_iterate_phdr(note_libpython, &local) == 0) return false;
  *handle = dlopen(local.path, RTLD_NOLOAD | RTLD_LAZY);
  return *handle != nullptr && dlsym(*handle, "Py_GetVersion") != nullptr;
}

template <class T>
bool find(void* handle, const char* name, T** symbol) {
  *symbol = reinterpret_cast<T*>(dlsym(handle, name));
  return *symbol != nullptr;
}

}  // namespace

const char* find_python(PythonApi* api) {
  void* handle;
  if (!find_interpreter(&handle)) return "no CPython interpreter is loaded in this process";
#define MEMSCOPE_FIND(name) find(handle, #name, &api->name)
  const bool complete =
      MEMSCOPE_FIND(Py_GetVersion) && MEMSCOPE_FIND(Py_IsInitialized) &&
      MEMSCOPE_FIND(PyGILState_GetThisThreadState) && MEMSCOPE_FIND(PyGILState_Check) &&
      MEMSCOPE_FIND(PyEval_GetFrame) && MEMSCOPE_FIND(PyFrame_GetBack) &&
      MEMSCOPE_FIND(PyFrame_GetCode) && MEMSCOPE_FIND(PyFrame_GetLineNumber) &&
      MEMSCOPE_FIND(Py_IncRef) && MEMSCOPE_FIND(Py_DecRef) &&
      MEMSCOPE_FIND(PyObject_GetAttrString) && MEMSCOPE_FIND(PyLong_AsLongLong) &&
      MEMSCOPE_FIND(PyLong_FromLong) && MEMSCOPE_FIND(PyUnicode_AsUTF8AndSize) &&
      MEMSCOPE_FIND(PyBytes_AsStringAndSize) && MEMSCOPE_FIND(PyDict_New) &&
      MEMSCOPE_FIND(PyDict_SetItemString) && MEMSCOPE_FIND(PyEval_GetBuiltins) &&
      MEMSCOPE_FIND(Py_CompileStringObject) && MEMSCOPE_FIND(PyUnicode_FromString) &&
      MEMSCOPE_FIND(PyEval_EvalCode) && MEMSCOPE_FIND(PyCFunction_NewEx) &&
      MEMSCOPE_FIND(PyErr_Fetch) && MEMSCOPE_FIND(PyErr_ExceptionMatches) &&
      MEMSCOPE_FIND(PyErr_SetInterrupt) && MEMSCOPE_FIND(PyExc_KeyboardInterrupt) &&
      MEMSCOPE_FIND(PyErr_Restore) && MEMSCOPE_FIND(PyErr_Clear) && MEMSCOPE_FIND(PyCode_Type);
  MEMSCOPE_FIND(_PyRuntime);
  MEMSCOPE_FIND(PyType_GetSlot);
#undef MEMSCOPE_FIND
  return complete ? nullptr : "the interpreter lacks a function that the stack check needs";
}

}  // namespace memscope::capture
