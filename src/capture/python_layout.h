// Where CPython keeps what the frame walk reads: one table a minor version, 3.9 to 3.14.
//
// Guarantees
//  * Offsets are of 64-bit, release, GIL builds; patch releases of a minor version share them. An
//    unknown version has no layout.
//  * From 3.13 on the interpreter publishes most of them at the start of _PyRuntime
//    (_Py_DebugOffsets): there the table must agree with it, so a build with another layout
//    (free-threaded, Py_DEBUG) is refused before anything is read.
//  * For older ones the proof is check(), which reads through guarded memory first.
//
// Sources: CPython's headers of each version: Include/cpython/{pystate,code,unicodeobject}.h,
// Include/internal/pycore_{frame,interpframe_structs,runtime,debug_offsets}.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace memscope::capture {

enum class LineTable : uint8_t {
  kLnotab,     // 3.9: co_lnotab
  kDeltas,     // 3.10: co_linetable of PEP 626
  kLocations,  // 3.11+: co_linetable of PEP 657
};

struct PythonLayout {
  int minor;
  LineTable line_table;

  // PyThreadState: `frame` (3.9, 3.10), `cframe` (3.11, 3.12), `current_frame` (3.13+).
  uint16_t thread_head;
  bool head_in_cframe;
  uint16_t cframe_head;  // _PyCFrame.current_frame

  // PyFrameObject up to 3.10: the instruction is an int f_lasti, in units of `lasti_bytes`.
  // _PyInterpreterFrame from 3.11: the instruction is a pointer into co_code_adaptive.
  bool frame_objects;
  uint8_t lasti_bytes;
  uint16_t frame_previous;
  uint16_t frame_code;  // f_code; f_executable (3.13+)
  bool tagged_code;     // f_executable is a _PyStackRef (3.14+)
  uint16_t frame_instruction;
  uint16_t frame_owner;  // _frameowner; 3 and above are not Python's frames

  // PyCodeObject.
  uint16_t code_first_line;
  uint16_t code_file;
  uint16_t code_function;  // co_qualname where there is one (3.11+), else co_name
  uint16_t code_line_table;
  uint16_t code_bytecode;         // co_code_adaptive (3.11+)
  uint16_t code_first_traceable;  // _co_firsttraceable (3.11+): index of the first RESUME
  uint8_t resume_opcode;

  // str: where the characters begin.
  uint16_t text_ascii;    // sizeof(PyASCIIObject)
  uint16_t text_compact;  // sizeof(PyCompactUnicodeObject), also of the pointer in other strings
};

// Two families, of which each later version says what it changed.
inline constexpr PythonLayout kPython39 = {
    .minor = 9,
    .line_table = LineTable::kLnotab,
    .thread_head = 24,
    .head_in_cframe = false,
    .cframe_head = 0,
    .frame_objects = true,
    .lasti_bytes = 1,
    .frame_previous = 24,
    .frame_code = 32,
    .tagged_code = false,
    .frame_instruction = 104,
    .frame_owner = 0,
    .code_first_line = 40,
    .code_file = 104,
    .code_function = 112,
    .code_line_table = 120,
    .code_bytecode = 0,
    .code_first_traceable = 0,
    .resume_opcode = 0,
    .text_ascii = 48,
    .text_compact = 72,
};

inline constexpr PythonLayout kPython310 = [] {
  PythonLayout layout = kPython39;
  layout.minor = 10;
  layout.line_table = LineTable::kDeltas;
  layout.lasti_bytes = 2;  // f_lasti counts code units from here on
  layout.frame_instruction = 96;
  return layout;
}();

inline constexpr PythonLayout kPython311 = {
    .minor = 11,
    .line_table = LineTable::kLocations,
    .thread_head = 56,
    .head_in_cframe = true,
    .cframe_head = 8,  // behind use_tracing
    .frame_objects = false,
    .lasti_bytes = 0,
    .frame_previous = 48,
    .frame_code = 32,
    .tagged_code = false,
    .frame_instruction = 56,
    .frame_owner = 69,
    .code_first_line = 72,
    .code_file = 112,
    .code_function = 128,
    .code_line_table = 136,
    .code_bytecode = 184,
    .code_first_traceable = 168,
    .resume_opcode = 151,
    .text_ascii = 48,
    .text_compact = 72,
};

inline constexpr PythonLayout kPython312 = [] {
  PythonLayout layout = kPython311;
  layout.minor = 12;
  layout.cframe_head = 0;
  layout.frame_previous = 8;
  layout.frame_code = 0;
  layout.frame_owner = 70;
  layout.code_first_line = 68;
  layout.code_bytecode = 192;
  layout.code_first_traceable = 176;
  layout.text_ascii = 40;  // wstr is gone (PEP 623)
  layout.text_compact = 56;
  return layout;
}();

inline constexpr PythonLayout kPython313 = [] {
  PythonLayout layout = kPython312;
  layout.minor = 13;
  layout.thread_head = 72;
  layout.head_in_cframe = false;
  layout.code_bytecode = 200;
  layout.code_first_traceable = 184;
  layout.resume_opcode = 149;
  return layout;
}();

inline constexpr PythonLayout kPython314 = [] {
  PythonLayout layout = kPython313;
  layout.minor = 14;
  layout.tagged_code = true;
  layout.frame_owner = 74;
  layout.code_bytecode = 208;
  layout.code_first_traceable = 192;
  layout.resume_opcode = 128;
  return layout;
}();

// The walk is compiled once for each of them.
inline constexpr PythonLayout kPythonLayouts[] = {kPython39,  kPython310, kPython311,
                                                  kPython312, kPython313, kPython314};

// The same in all of them.
inline constexpr uint16_t kObjectType = 8;      // PyObject.ob_type
inline constexpr uint16_t kVarSize = 16;        // PyVarObject.ob_size
inline constexpr uint16_t kBytesData = 32;      // PyBytesObject.ob_sval
inline constexpr uint16_t kTypeName = 24;       // PyTypeObject.tp_name
inline constexpr uint16_t kTypeDealloc = 48;    // PyTypeObject.tp_dealloc
inline constexpr uint16_t kTextLength = 16;     // PyASCIIObject.length
inline constexpr uint16_t kTextState = 32;      // PyASCIIObject.state
inline constexpr uint8_t kFirstOtherOwner = 3;  // FRAME_OWNED_BY_CSTACK / _INTERPRETER
inline constexpr uint8_t kOwnedByGenerator = 1;
// _PyStackRef keeps its tags in the low bits; objects are aligned to 16 bytes.
inline constexpr uint64_t kTagBits = 7;

// The layout of CPython 3.`minor`, or nullptr.
const PythonLayout* python_layout(int major, int minor);

// "3.11.2" of Py_GetVersion()'s "3.11.2 (main, …) [GCC …]"; false where it is no version.
bool parse_python_version(std::string_view text, int* major, int* minor, std::string_view* number);

// Compares a layout of 3.13 or newer with the debug offsets at `runtime` (&_PyRuntime). nullptr, or
// why it cannot be used.
const char* compare_with_debug_offsets(const PythonLayout& layout, const void* runtime);

}  // namespace memscope::capture
