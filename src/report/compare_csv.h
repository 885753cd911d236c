// msMemScope's memory_compare_<time>.csv: the operators of two dumps side by side.
//
//   ,,,Base,Compare
//   Event,Name,Device Id,Allocated Memory(byte),Allocated Memory(byte),Diff Memory(byte)
//   OP_LAUNCH,torch._ops.aten.mm.default,0,512,512,0
//   OP_LAUNCH,torch._ops.aten.randn.default,0,N/A,4000256,4000256
//
// A side that lacks the operator has N/A and counts as 0 in the difference. Fields are quoted as
// RFC 4180 says, where they need it.
#pragma once

#include <span>
#include <string>

#include "analysis/compare_operators.h"

namespace memscope {

inline constexpr std::string_view kCompareCsvHeader =
    ",,,Base,Compare\n"
    "Event,Name,Device Id,Allocated Memory(byte),Allocated Memory(byte),Diff Memory(byte)\n";

// The rows of one level, without the header. `names` are what both runs were collected with.
std::string compare_csv_rows(std::span<const DeviceOperators> devices, OperatorLevel level,
                             const StringTable& names);

// What a comparison of dumps says on the terminal: a line for each device, and one for each limit
// that was hit.
std::string compare_csv_summary(std::span<const DeviceOperators> devices, OperatorLevel level);

}  // namespace memscope
