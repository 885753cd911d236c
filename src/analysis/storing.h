// What keeps what a line makes, as the source says it: for runs whose objects could not be asked,
// because the list died with main() before the interpreter's end.
//
//   prediction = logits.softmax(dim=1)     the site
//   history.append(prediction)             the one statement of the function that stores it
//
// Followed are: a value made inside the storing statement; a name that exactly one statement of its
// function stores as it is; a value that is returned, into the caller's statement. Anything else,
// two that store, or a container that something is also taken out of, gives nothing: no line is
// better than a wrong one. What is given is `inferred`.
#pragma once

#include <optional>
#include <string>

#include "analysis/site.h"

namespace memscope {

struct StoredAt {
  SiteFrame at;
  std::string container;  // as the program writes it: "history", "self.seen"
  std::string function;   // "file:function" in which it is written so
};

std::optional<StoredAt> stored_at(Sites& sites, StackId stack);

}  // namespace memscope
