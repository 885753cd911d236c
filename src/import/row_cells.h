// What the cells of a msMemScope row say, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/where.h"
#include "import/columns.h"

namespace memscope {

inline constexpr size_t kMaxRowText = 64 << 10;  // of a name or a label; the rest is cut

// Empty, N/A and the like.
bool is_none(std::string_view cell);
// The name; "" for none.
std::string_view name_of(const FileRow& row);
// The text of an MSTX row, which always has one: whatever the cell says. In a db of the original it
// stands between two quotes, and in ours where it would be taken for such a one.
std::string_view message_of(const FileRow& row, bool in_db);
// For a problem: `"abc"`, cut where it is long.
std::string shown(std::string_view cell);

// The keys of an Attr that events are made of. Views into the cell.
struct RowAttributes {
  std::string_view size, used, total, addr, process_used, device_used, type, stream, task, req_size,
      source, backend, dropped, dropped_frees, sampled_size;
  bool pinned = false, shadow = false;
  bool others = false;  // there are keys that a block's row does not have
  std::string owner;

  explicit RowAttributes(std::string_view attr);
};

// The pairs of an Attr but for those whose keys are `known`, in order, as a JSON object of texts;
// "" where there are none. A key is a word: letters, digits, underscores.
std::string other_attributes(std::string_view attr, std::span<const std::string_view> known);

// Where a record's row says it was: that device, or Where{} for none.
inline Where place_on(std::optional<Device> device, Layer layer) {
  return device ? Where{layer, *device} : Where{};
}

}  // namespace memscope
