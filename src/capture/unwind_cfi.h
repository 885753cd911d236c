// A function's call frame information (.eh_frame), read once for each address into an UnwindRule.
// Not for the hot path proper, but for the first sight of an address on it: no allocation, no lock,
// no system call.
//
// Guarantees
//  * Nothing outside `readable` is read, whatever the bytes are; damaged or unknown information
//    gives kStop.
//  * The rule is that of the row in force at `pc`. For a caller's frame `pc` is its return address
//    minus one, so that a call at the very end of a function is still in it.
//
// Formats: DWARF 4, section 6.4; the Linux Standard Base, "Exception Frames" (.eh_frame_hdr and the
// augmentations "zRPLS"); AArch64's DWARF supplement ("B" and DW_CFA_AARCH64_negate_ra_state, which
// says that the return address is signed: the walk strips it always).
#pragma once

#include <cstdint>

#include "capture/unwind_rule.h"

namespace memscope::capture {

struct CfiSection {
  const uint8_t* header = nullptr;  // .eh_frame_hdr (PT_GNU_EH_FRAME)
  // The loaded segment that holds it, and .eh_frame with it.
  const uint8_t* readable_begin = nullptr;
  const uint8_t* readable_end = nullptr;
};

UnwindRule find_unwind_rule(const CfiSection& section, uint64_t pc) noexcept;

// The part of a function, by its call frame information, that `pc` is in: [*begin, *end).
bool find_function(const CfiSection& section, uint64_t pc, uint64_t* begin, uint64_t* end) noexcept;

}  // namespace memscope::capture
