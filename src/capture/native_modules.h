// Tells the trace what is loaded: a Module record for each object that native frames may name, and
// one when it is gone. Trace lock held for all of it; not on the hot path.
//
// Guarantees
//  * An object that a reader cannot tell by its build-id is told by path, size and time of change.
//  * One that comes and goes between two calls is not written; its frames say what it was.
#pragma once

namespace memscope::capture::native_modules {

// A new trace: nothing is written yet.
void begin();
// What has come and gone since the last call. Nothing where native stacks were never on.
void write_new();

}  // namespace memscope::capture::native_modules
