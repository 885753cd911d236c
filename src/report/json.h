// A diagnosis as the contract's JSON object (docs/analyze.schema.json).
//
// Keys come in the schema's order, all of them; unknown is null. Text that is no valid UTF-8 has
// the bad bytes replaced by U+FFFD; numbers JSON cannot say (infinity, NaN) become null. Never
// throws.
#pragma once

#include <string>

#include "analysis/diagnosis.h"

namespace memscope {

// Indented by two spaces, with a newline at the end.
std::string diagnosis_json(const Diagnosis& diagnosis);

// What the glue asks before its walk over Python objects, within seconds:
// {"schema":1,"groups":[{"site":F|null,"stack":[F...],"blocks":[{"addr","size","birth"}]}]}, one
// line. The most telling group first; lines too small for a verdict are among them.
std::string suspects_json(const Diagnosis& diagnosis);

}  // namespace memscope
