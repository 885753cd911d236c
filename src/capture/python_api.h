// The interpreter's functions, found at run time: no compile-time dependence on Python, one binary
// for every CPython. Only functions that 3.9 to 3.14 all export with one signature.
//
// The interpreter may be the executable itself, a library in the global scope, or a libpython that
// was loaded RTLD_LOCAL (an embedding program): all three are found.
#pragma once

#include <cstdint>

namespace memscope::capture {

// Opaque: what is read of an object is read through PythonLayout.
struct PyObject;
struct PyThreadState;

struct PyMethod {  // PyMethodDef
  const char* name;
  PyObject* (*function)(PyObject* self, PyObject* argument);
  int flags;
  const char* doc;
};

struct PythonApi {
  const char* (*Py_GetVersion)();
  int (*Py_IsInitialized)();
  PyThreadState* (*PyGILState_GetThisThreadState)();
  int (*PyGILState_Check)();

  PyObject* (*PyEval_GetFrame)();                 // borrowed
  PyObject* (*PyFrame_GetBack)(PyObject* frame);  // new reference
  PyObject* (*PyFrame_GetCode)(PyObject* frame);  // new reference
  int (*PyFrame_GetLineNumber)(PyObject* frame);

  void (*Py_IncRef)(PyObject*);
  void (*Py_DecRef)(PyObject*);
  PyObject* (*PyObject_GetAttrString)(PyObject*, const char* name);
  long long (*PyLong_AsLongLong)(PyObject*);
  PyObject* (*PyLong_FromLong)(long);
  const char* (*PyUnicode_AsUTF8AndSize)(PyObject*, intptr_t* size);
  PyObject* (*PyUnicode_FromString)(const char*);
  int (*PyBytes_AsStringAndSize)(PyObject*, char** bytes, intptr_t* size);
  PyObject* (*PyDict_New)();
  int (*PyDict_SetItemString)(PyObject* dict, const char* key, PyObject* value);
  PyObject* (*PyEval_GetBuiltins)();  // borrowed
  PyObject* (*Py_CompileStringObject)(const char* text, PyObject* file, int start, void* flags,
                                      int optimize);
  PyObject* (*PyEval_EvalCode)(PyObject* code, PyObject* globals, PyObject* locals);
  PyObject* (*PyCFunction_NewEx)(PyMethod* method, PyObject* self, PyObject* module);
  void (*PyErr_Fetch)(PyObject** type, PyObject** value, PyObject** traceback);
  void (*PyErr_Restore)(PyObject* type, PyObject* value, PyObject* traceback);
  void (*PyErr_Clear)();
  int (*PyErr_ExceptionMatches)(PyObject* type);
  void (*PyErr_SetInterrupt)();

  void* PyCode_Type;
  PyObject** PyExc_KeyboardInterrupt;
  // Optional, null where the version has none.
  void* _PyRuntime;                               // read from 3.13 on
  void* (*PyType_GetSlot)(void* type, int slot);  // of static types from 3.10 on
};

// Fills `api`. nullptr, or why it cannot be.
const char* find_python(PythonApi* api);

}  // namespace memscope::capture
