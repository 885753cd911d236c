// Strong ids: a dense index into one particular table. A StackId cannot be passed where a
// StringId is meant. Id 0 is always the table's "none" entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace memscope {

template <typename Tag>
struct Id {
  uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using StringId = Id<struct StringTag>;  // an interned string
using FrameId = Id<struct FrameTag>;    // an interned (function, file, line)
using StackId = Id<struct StackTag>;    // an interned call stack: a node of the trie
using ThreadId = Id<struct ThreadTag>;  // a thread of one process

}  // namespace memscope

template <typename Tag>
struct std::hash<memscope::Id<Tag>> {
  size_t operator()(memscope::Id<Tag> id) const noexcept { return id.value * 0x9E3779B97F4A7C15u; }
};
