// What the event sources of this room have in common. Each goes through its file by a Pass:
//
//   bool Pass::next(Event&)      false at the end; `words` are valid until the next call
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/event.h"

namespace memscope {

// EventSource::next_batch() of a pass; the events' words are kept in `words`.
template <typename Pass>
size_t next_batch_of(Pass& pass, std::span<Event> out, std::vector<uint64_t>& words) {
  constexpr size_t kManyWords = 1 << 16;
  words.clear();
  size_t count = 0;
  while (count < out.size() && words.size() < kManyWords && pass.next(out[count])) {
    // By place until the batch is whole: the vector may move.
    words.insert(words.end(), out[count].words.begin(), out[count].words.end());
    ++count;
  }
  size_t at = 0;
  for (Event& event : out.first(count)) {
    const size_t size = event.words.size();
    event.words = std::span<const uint64_t>(words).subspan(at, size);
    at += size;
  }
  return count;
}

// EventSource::scan() of a pass that begins here.
template <typename Pass, typename Visit>
void scan_records(Pass pass, uint64_t kinds, Visit&& visit) {
  for (Event event; pass.next(event);) {
    if (event.kind != EventKind::kRecord || event.record_kind >= 64) continue;
    if ((kinds >> event.record_kind & 1) != 0) visit(event);
  }
}

}  // namespace memscope
