// Whose code a file is: the one list of what is not the user's.
//
// The user's is everything that is not under the standard library, site-packages or dist-packages,
// the tool itself or an inductor cache; so are notebooks and editable installs. In a stack without
// a user frame, a library's frame stands in, but no frame of the frameworks, which allocate on
// everybody's behalf.
//
// Native code is judged by the object it is in and, where that is the user's and the source file is
// known, by the source file: what a template of a library's header became is the library's.
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

// Of an object file, by path. kStandard: the C and C++ run times, allocators, the interpreter,
// what is no file; kLibrary: everything else that a system or a package manager installs.
Place place_of_object(std::string_view path);
// Of a source file of an object that is the user's; "" is the user's.
Place place_of_source(std::string_view file);

}  // namespace memscope
