// Parts that several JSON outputs share, each as the contract's section 3 has it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/diagnosis.h"

namespace memscope {

nlohmann::ordered_json json_of(const SiteFrame& frame);  // F
nlohmann::ordered_json json_of(const InputSummary& input);

}  // namespace memscope
