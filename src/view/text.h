// Names and numbers as the viewer's answers have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/text.h"

namespace memscope::view {

inline constexpr size_t kListedName = 300;       // bytes of a name in a list
inline constexpr size_t kWholeName = 64 * 1024;  // and where it is given whole

// At most `most` bytes, cut between characters, with an ellipsis where it was cut.
std::string cut(std::string_view text, size_t most = kListedName);

std::string bytes_text(uint64_t bytes);  // "512 B", "1.5 MiB"
std::string duration_text(uint64_t ns);  // "16 µs", "1.5 s"

// What people type: decimal or 0x..., with a unit of bytes (k, M, G, T, kB, MiB, ...; powers of
// 1024) or of time (ns, us, ms, s, min). nullopt for anything else or what does not fit.
std::optional<int64_t> number_from_text(std::string_view text);

}  // namespace memscope::view
