// The next thing to do about a verdict: one concrete sentence.
#pragma once

#include <string>

#include "analysis/diagnosis.h"
#include "analysis/growth.h"

namespace memscope {

// `container`: the name the program knows the holder by, "" unknown. Reads the verdict's cause,
// site, stack, kept_at and holders. `bounded`: what holds it has a bound and is not full.
std::string bounded_advice(const Verdict& verdict, const std::string& container);
std::string leak_advice(const Verdict& verdict, Shape shape, const std::string& container);

}  // namespace memscope
