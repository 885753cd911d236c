// The Attr of a row: pairs of a key and a value, in any order.
//
//   csv   {allocation_id:4,addr:0x12c040100000,size:4096,owner:PTA@ops}    nothing is quoted
//   db    {"allocation_id":"4","addr":"0x12c040100000","size":"4096"}      JSON, all values strings
//   none  empty, '' or {}
//
// A csv's value may have commas in it (inefficient_type:early_allocation,late_deallocation): it
// ends where a comma is followed by a key and a colon; after a label only by a key that is known. A
// csv's value that starts with a quote is a JSON string. A db's label may have raw quotes in it: it
// ends at a quote that a comma and a key, or the end, follows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace memscope {

// Goes through the pairs once; any bytes are fine.
class Attributes {
 public:
  explicit Attributes(std::string_view text);

  // Views are valid until the next call. False at the end.
  bool next(std::string_view& key, std::string_view& value);

 private:
  std::string_view json_string();
  std::string_view bare_value(std::string_view key);

  std::string_view text_;  // within the braces
  size_t at_ = 0;
  std::string scratch_;
};

// A number as the files have it: decimal or 0x..., blanks around it; `negative` as old files write
// the size of a FREE. nullopt for anything else, or one that does not fit.
struct FileNumber {
  uint64_t value = 0;
  bool negative = false;
};
std::optional<FileNumber> file_number(std::string_view text);
// The same, not negative.
std::optional<uint64_t> file_count(std::string_view text);
// A Timestamp(ns) in ns. Old files have microseconds under the same heading: 16 digits.
std::optional<uint64_t> file_time(std::string_view text);

}  // namespace memscope
