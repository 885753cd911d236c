// JSON as the values of values.h: a snapshot that somebody made JSON of.
#pragma once

#include "core/result.h"
#include "import/byte_stream.h"
#include "import/values.h"

namespace memscope {

// Promises what read_pickle() does.
Result<Value> read_json(ByteStream& bytes, Values& values);

}  // namespace memscope
