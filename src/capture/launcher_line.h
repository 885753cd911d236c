// Tells the launcher, if there is one, why a process could not be recorded, and which programs
// could not be traced: there is no trace to say it in, and the program's stderr is not the
// launcher's to read.
//
// By a datagram to an abstract socket (unix(7)) whose name is in MSMEMSCOPE_LAUNCHER: nothing on
// disk, no descriptor that the program would have to inherit. Never waits, never fails for the
// caller.
#pragma once

namespace memscope::capture {

// `suffix` is put behind the name: kUntracedSuffix (trace/untraced.h) for programs not traced.
void tell_launcher(const char* line, const char* suffix = "") noexcept;

}  // namespace memscope::capture
