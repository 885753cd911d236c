// Shell patterns: `*` any text, `?` one byte, `[a-z]`, `[!a-z]`. Linear time in the text for each
// star at worst, no recursion.
#pragma once

#include <string_view>

namespace memscope {

bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace memscope
