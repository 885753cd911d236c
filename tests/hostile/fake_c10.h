// A stand-in for torch's allocator that reports as libc10 does: the same symbols, called through
// the library's own GOT, so that the agent patches it as it patches torch.
#pragma once

#include <cstddef>

extern "C" {
void fake_c10_new(void* block, size_t bytes);  // reports an allocation
void fake_c10_delete(void* block);             // reports a free
// What this thread's next report of an allocation does inside the allocator's own code, once:
// throws, jumps away, allocates.
void fake_c10_inside(void (*action)());
}
