#include "analysis/native_names.h"

#include <algorithm>

namespace memscope {

uint32_t NativeNames::object_of(const Frame& frame) {
  const uint64_t key = uint64_t{frame.file.value} << 32 | frame.module.value;
  const auto [at, fresh] = objects_.emplace(key, 0);
  if (fresh) {
    ObjectFile file{std::string(strings_.text(frame.file)),
                    std::string(strings_.text(frame.module))};
    if (file.build_id.empty()) {
      const auto module = side_.unnamed_modules.find(file.path);
      if (module != side_.unnamed_modules.end()) file.mtime_ns = module->second;
    }
    at.value() = symbolizer_.object(file);
  }
  return at->second;
}

bool NativeNames::add_frame(const Frame& frame, std::vector<NativeAddress>& addresses) {
  if (frame.kind != FrameKind::kNative || frame.offset == 0) return false;
  addresses.push_back({object_of(frame), frame.offset});
  return true;
}

bool NativeNames::add(StackId stack, std::vector<NativeAddress>& addresses) {
  bool native = false;
  for (StackId node = stack; node; node = stacks_.parent(node)) {
    native = add_frame(stacks_.frame(stacks_.innermost(node)), addresses) || native;
  }
  return native;
}

std::span<const SourceFrame> NativeNames::find(const Frame& frame) const {
  const auto at = objects_.find(uint64_t{frame.file.value} << 32 | frame.module.value);
  if (at == objects_.end() || frame.offset == 0) return {};
  return symbolizer_.find({at->second, frame.offset});
}

void name_stacks(Symbolizer& symbolizer, std::span<NativeNames> names,
                 std::vector<StackToName> stacks) {
  std::stable_sort(stacks.begin(), stacks.end(),
                   [](const StackToName& a, const StackToName& b) { return a.bytes > b.bytes; });
  std::vector<NativeAddress> addresses;
  size_t named = 0;
  for (const StackToName& one : stacks) {
    if (named == kMaxNamedStacks) break;
    if (names[one.input].add(one.stack, addresses)) ++named;
  }
  symbolizer.resolve(addresses);
}

void add_stacks(size_t input, const ReplayResult& replay, std::vector<StackToName>& stacks) {
  for (const Group& group : replay.groups) {
    if (!group.stack) continue;
    uint64_t most = group.live_bytes;
    for (const CurvePoint& point : group.live) most = std::max<uint64_t>(most, point.bytes);
    stacks.push_back({input, group.stack, most});
  }
}

}  // namespace memscope
