// Whose code a file is: the one list of what is not the user's.
//
// The user's is everything that is not under the standard library, site-packages or dist-packages,
// the tool itself or an inductor cache; so are notebooks and editable installs. In a stack without
// a user frame, a library's frame stands in, but no frame of the frameworks, which allocate on
// everybody's behalf.
#pragma once

#include <cstdint>
#include <string_view>

namespace memscope {

enum class Place : uint8_t {
  kUser,
  kLibrary,    // installed, by somebody
  kFramework,  // torch, torch_npu, mindspore, numpy; code they generate
  kStandard,   // the standard library, frozen modules
  kTool,       // msmemscope
};

// `file` as the interpreter has it: a path or "<...>".
Place place_of(std::string_view file);

}  // namespace memscope
