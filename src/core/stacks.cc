#include "core/stacks.h"

#include "core/mix_hash.h"

namespace memscope {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

}  // namespace

StringTable::StringTable() {
  intern("");
}

StringId StringTable::intern(std::string_view text) {
  if (const auto found = index_.find(text); found != index_.end()) return StringId(found->second);
  const auto id = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  index_.emplace(texts_.back(), id);
  return StringId(id);
}

size_t StackTable::FrameHash::operator()(const Frame& f) const {
  uint64_t hash = mix(0, uint64_t{f.file.value} << 32 | f.function.value);
  hash = mix(hash, uint64_t{f.line} << 32 | f.end_line);
  hash = mix(hash, uint64_t{f.module.value} << 32 | f.first_line);
  return mix(hash, f.offset);
}

StackTable::StackTable() {
  frames_.emplace_back();
  nodes_.emplace_back();
}

FrameId StackTable::intern_frame(const Frame& frame) {
  const auto [entry, fresh] = frame_index_.emplace(frame, static_cast<uint32_t>(frames_.size()));
  if (fresh) frames_.push_back(frame);
  return FrameId(entry->second);
}

StackId StackTable::intern(StackId parent, FrameId frame) {
  // Mixed, which keeps keys apart: the table's buckets are their lowest bits (core/mix_hash.h).
  const uint64_t key = MixHash()(uint64_t{parent.value} << 32 | frame.value);
  const auto [entry, fresh] = node_index_.emplace(key, static_cast<uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back({parent, frame});
  return StackId(entry->second);
}

std::vector<FrameId> StackTable::frames(StackId id) const {
  std::vector<FrameId> result;
  for (; id; id = nodes_[id.value].parent) result.push_back(nodes_[id.value].frame);
  return result;
}

}  // namespace memscope
