// The report lines that programs know from msMemScope, letter for letter: leaked blocks, and the
// gap between the least and the most allocated inside a step. Printed after the diagnosis where
// `--analysis` named leaks. What is a leak is our verdicts' judgement, not the original's rule
// (older than a step).
//
//   ====== ERROR: Detected memory leaks on device 0 ======
//   Direct Pytorch Caching memory pool leak of 1.000000 Mb(s) at 0x12c0 in kernel_0 at step 11.
//   ====== SUMMARY: 290.000000 Mb(s) leaked in 290 allocation(s) ======
//   ======= Pytorch Caching memory pool Gap Analysis of Device 0 =======
//           MinAlloc/MaxAlloc(%)     MinAllocMem(MB)          StepId
//   MinGap  44.4444                  0.0156                   2
//   MaxGap  66.6667                  0.0391                   4
//
// Kernels are not recorded yet, so their number is always 0.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "analysis/diagnose.h"

namespace memscope {

// At most `max_blocks` "Direct" lines a device, the oldest; then a line that says how many more.
// On a screen a thousand lines would hide the answer; a file gets them all.
inline constexpr size_t kBlocksOnScreen = 6;
std::string compat_report(std::span<const PoolReport> pools, size_t max_blocks = ~size_t{0});

}  // namespace memscope
