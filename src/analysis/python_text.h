// Reading single Python statements, as far as one can without a parser: what a statement assigns,
// returns or puts into a container, and whether a name is stored as it is.
//
// The texts are statements on one line (Statements::text). What is not understood is kOther or
// false: a caller must be right, not complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memscope {

struct PythonStatement {
  enum class Kind {
    kOther,
    kAssign,   // name = value            target: the name
    kStore,    // target[..] = value, target.append(value)
    kSetItem,  // as kStore, by subscript
    kReturn,   // return value
  };
  Kind kind = Kind::kOther;
  std::string target;  // a name, or a dotted and subscripted one
  std::string value;
};

PythonStatement parse_statement(std::string_view text);

// The elements of `value` that are stored as they are: of a tuple, list or dict its elements, else
// the value itself. `x.detach()` counts as x: it has x's memory.
std::vector<std::string> stored_elements(std::string_view value);

// "a.b(...)" -> "a.b" where the call is all there is, else "".
std::string called(std::string_view expression);

bool is_identifier(std::string_view text);

}  // namespace memscope
