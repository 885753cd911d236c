// A program whose main thread ends by pthread_exit() lives on until its last thread does; glibc
// then calls exit(0) in that one. Our thread must not be what keeps it alive: it asks here, and
// ends, so that the program's exit comes when it would without us.
#pragma once

namespace memscope::capture {

// Whether the main thread has ended and no thread is left but the calling one. Reads /proc: some
// 10 us. False where that cannot be told.
bool only_this_thread_is_left() noexcept;

}  // namespace memscope::capture
