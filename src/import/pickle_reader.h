// Python's pickle, protocols 2 to 5, as data and nothing else: whatever asks for a name, a call or
// an object of a class is refused before anything is done about it.
//
//   Values values(sink);                         // who is handed the items of long lists
//   auto read = read_pickle(bytes, values);      // the root value, or one clear line
//
// What is read: numbers, texts, bytes, lists, tuples, dicts with text keys, and references among
// them; what PyTorch's two writers (Python's pickle and torch's own in C++) make, and protocols 0
// and 1 as far as they share these opcodes. Opcodes: Python's Lib/pickletools.py.
//
// Promises: values.h's; a length is believed only as far as there are bytes; what follows the end
// is not looked at (pages with a snapshot in them pad it with zeros).
#pragma once

#include "core/result.h"
#include "import/byte_stream.h"
#include "import/values.h"

namespace memscope {

// The error's text begins with where: "at byte 17: ...".
Result<Value> read_pickle(ByteStream& bytes, Values& values);

}  // namespace memscope
