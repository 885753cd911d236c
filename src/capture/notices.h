// Lines for the user about what is switched off or limited: once each on stderr, and kept in the
// trace for `msmemscope info`. notice() itself is declared in recorder.h, for the sources.
#pragma once

namespace memscope::capture::notices {

// Writes those that came before there was a trace. Trace lock held.
void write_pending();
// A line on stderr only.
void say(const char* line);

}  // namespace memscope::capture::notices
