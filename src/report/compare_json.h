// A comparison as JSON (docs/compare.schema.json): all keys are always present, unknown is null.
#pragma once

#include <string>

#include "analysis/compare.h"

namespace memscope {

// Indented by two spaces, with a newline at the end. Never throws.
std::string comparison_json(const Comparison& comparison);

}  // namespace memscope
