// Command mode, inside a Python that has never heard of us: brings the msmemscope package into the
// interpreter before the program's first line, without a change to its environment, sys.path or
// command line.
//
// How: the preloaded agent's constructor installs an audit hook (PySys_AddAuditHook, allowed before
// Py_Initialize since Python 3.8). CPython raises `cpython.run_command`, `run_file`, `run_module`,
// `run_stdin` ... when it is ready and about to run the program: at the first of these a finder is
// put in front of sys.meta_path that waits for torch. When that is asked for, the package is loaded
// from its directory and its `_inject.begin()` called, before torch's own import goes on: a program
// without torch pays a microsecond an import. With the host source on nothing is waited for: Python
// stacks are wanted from the first line on. This works with -I, -E, -S, in virtual environments,
// and in spawn and forkserver children, which come with the preload.
//
// Guarantees
//  * Nothing that fails here reaches the program: one line on stderr, the error indicator as it
//  was.
//    A Ctrl-C that arrives meanwhile is delivered to the program.
//  * What the package does at exit comes after all that the program does there, however late torch
//    comes: its place among atexit's functions is taken at once.
//  * A program's own `import msmemscope` gets the package of this agent.
//  * Processes without Python are left as they are. After the first run event, an audited operation
//    costs one load and one branch.
#pragma once

namespace memscope::capture::inject {

// To be called from the preloaded agent's constructor. The package is expected in
// $MSMEMSCOPE_PYTHONPATH/msmemscope. False where the process has no Python (3.8 or newer) or the
// variable is not set.
bool on_load() noexcept;

}  // namespace memscope::capture::inject
