// Proves on the running interpreter that the raw walk is right, before it is ever used.
//
// Guarantees
//  * First, the calling thread's stack is walked through guarded reads (the kernel copies, and says
//    so where an address is not mapped): a wrong layout gives an answer, not a crash.
//  * Then the walk and the resolving are compared, frame by frame down to the oldest, with
//    CPython's public API inside a plain function, a generator, a coroutine and a call-back from C:
//    same code object, instruction, file, function and line.
//  * And a code object is let die, to see that its address's epoch moves on.
//  * Nothing is left behind: no module, no output, no exception, no change of a pending one. A
//    Ctrl-C that falls into the check is raised after it.
#pragma once

#include "capture/python_api.h"
#include "capture/python_layout.h"

namespace memscope::capture {

struct CheckResult {
  const char* problem = nullptr;  // null: the walk is right
  bool final = false;  // the walk is wrong; else the check could not be made (a full recursion
                       // stack, no memory, no pipe) and may be tried again
};

// [GIL] wrap_dealloc() must have been called.
CheckResult check_python_walk(const PythonApi& api, const PythonLayout& layout);

}  // namespace memscope::capture
