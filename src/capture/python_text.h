// A Python str, read raw, as UTF-8.
//
// Guarantees
//  * Only what never changes in a finished str is read: its length, kind and characters. The UTF-8
//    form that CPython caches in it is not, since another thread may be filling it in.
//  * ASCII text is not copied. Other text is converted into the scratch and cut at a character
//    where that is full. A lone surrogate (a file name that was not UTF-8) becomes U+FFFD, so the
//    result is always valid UTF-8.
//  * At most kMaxText bytes are returned, whatever the object claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "capture/python_layout.h"

namespace memscope::capture {

inline constexpr size_t kMaxText = 4096;

// Memory for text that had to be converted: used from the front.
struct TextScratch {
  char* next;
  size_t left;
};

// `object` is a str or null (gives ""). The view lives as long as the str and the scratch do.
std::string_view python_text(const PythonLayout& layout, const void* object, TextScratch* scratch);

}  // namespace memscope::capture
