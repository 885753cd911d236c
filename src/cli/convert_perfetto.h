// `convert ... -o FILE.json.gz`: all inputs as one trace for Perfetto's UI.
#pragma once

#include <vector>

#include "cli/convert.h"
#include "import/open_input.h"

namespace memscope::cli {

// Whether the file asked for is one.
bool is_perfetto(const ConvertRequest& request);
// The exit status: 0, or 2 after one line on stderr.
int convert_to_perfetto(std::vector<Input>& inputs, const ConvertRequest& request);

}  // namespace memscope::cli
