// A frame's file, function and lines, read raw from its code object.
//
// Guarantees
//  * No GIL, no reference counts, no allocation: only what never changes in a living code object
//    is read. The caller's frame keeps the code alive.
//  * What is not a code object is refused.
#pragma once

#include <cstddef>

#include "capture/python_layout.h"
#include "capture/python_stack.h"

namespace memscope::capture {

// `code_type` is &PyCode_Type.
bool resolve_frame(const PythonLayout& layout, const void* code_type, const RawFrame& frame,
                   char* scratch, size_t scratch_size, python_stack::Resolved* out) noexcept;

}  // namespace memscope::capture
