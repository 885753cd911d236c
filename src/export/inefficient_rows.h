// Writes `inefficient_type` into the MALLOC rows of a msMemScope csv or db, as the original does:
//
//   csv   "{allocation_id:4,size:512,inefficient_type:early_allocation,late_deallocation}"
//   db {"allocation_id":"4","size":"512","inefficient_type":"early_allocation,late_deallocation"}
//
//  * Into a copy, which appears under its name whole or not at all; or into the input itself.
//  * A csv's other bytes stay as they are, damaged rows included. A db's other tables too; what its
//    schema says (triggers, views) is never run.
//  * Types that a row has already are kept, each once: the same results written twice change
//    nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace memscope {

// The MALLOC row of a block, and the types to add.
struct InefficientRow {
  uint64_t pid = 0, time = 0, addr = 0;  // time in ns
  bool atb = false;                      // event type ATB, else PTA
  uint8_t types = 0;                     // of Inefficiency
};

struct WrittenRows {
  uint64_t matched = 0;  // rows that were found
  uint64_t changed = 0;  // of them, those that did not say so already
};

// `output` may be the input. Which of the two the input is, is in what it holds.
Result<WrittenRows> write_inefficient_rows(const std::filesystem::path& input,
                                           const std::filesystem::path& output,
                                           const std::vector<InefficientRow>& rows);

// An Attr with the types ("early_allocation,late_deallocation") added to those it has. `json`: as
// in a db, else as in a csv, without the field's quotes.
std::string attr_with_types(std::string_view attr, std::string_view types, bool json);

}  // namespace memscope
