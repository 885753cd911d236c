// What the cells of a msMemScope row say, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/where.h"
#include "import/columns.h"

namespace memscope {

inline constexpr size_t kMaxRowText = 64 << 10;  // of a name or a label; the rest is cut

// Empty, N/A and the like.
bool is_none(std::string_view cell);
// The name, without the quotes a db keeps; "" for none.
std::string_view name_of(const FileRow& row);
// For a problem: `"abc"`, cut where it is long.
std::string shown(std::string_view cell);

// The keys of an Attr that events are made of. Views into the cell.
struct RowAttributes {
  std::string_view size, used, total, addr, process_used, device_used, type, stream, task, req_size,
      source, backend, free;
  bool pinned = false, shadow = false;
  std::string owner;

  explicit RowAttributes(std::string_view attr);
};

// Where a record's row says it was: that device, or Where{} for none.
inline Where place_on(std::optional<Device> device, Layer layer) {
  return device ? Where{layer, *device} : Where{};
}

}  // namespace memscope
