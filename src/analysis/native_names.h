// What the native frames of a process are called: function, source line and the calls inlined
// there, for those stacks of which it is worth knowing.
//
//   Symbolizer symbolizer(options);                    // one for all processes of a diagnosis
//   NativeNames names(symbolizer, stacks, strings, side);
//   names.add(stack, addresses);                       // the important stacks first
//   symbolizer.resolve(addresses);
//   names.find(frame)                                  // innermost first; none: not known
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/mix_hash.h"
#include "core/stacks.h"
#include "replay/replay.h"
#include "symbols/symbolizer.h"
#include "tsl/robin_map.h"

namespace memscope {

// Who is asked for the names of a frame: NativeNames, or a table of them (view/name_table.h).
class FrameNames {
 public:
  FrameNames() = default;
  FrameNames(const FrameNames&) = default;
  FrameNames& operator=(const FrameNames&) = delete;
  virtual ~FrameNames() = default;
  // Innermost first; none: not known.
  virtual std::span<const SourceFrame> find(const Frame& frame) const = 0;
};

class NativeNames : public FrameNames {
 public:
  // All must outlive the object.
  NativeNames(Symbolizer& symbolizer, const StackTable& stacks, const StringTable& strings,
              const SideRecords& side)
      : symbolizer_(symbolizer), stacks_(stacks), strings_(strings), side_(side) {}

  // Adds the addresses of the stack's native frames; false where it has none.
  bool add(StackId stack, std::vector<NativeAddress>& addresses);
  // That of one frame; false where it is no native one whose place is known.
  bool add_frame(const Frame& frame, std::vector<NativeAddress>& addresses);
  std::span<const SourceFrame> find(const Frame& frame) const override;

 private:
  uint32_t object_of(const Frame& frame);

  Symbolizer& symbolizer_;
  const StackTable& stacks_;
  const StringTable& strings_;
  const SideRecords& side_;
  tsl::robin_map<uint64_t, uint32_t, MixHash> objects_;  // file << 32 | module -> of the symbolizer
};

// A stack worth naming, and what for: the more bytes, the sooner.
struct StackToName {
  size_t input = 0;
  StackId stack;
  uint64_t bytes = 0;
};
inline constexpr size_t kMaxNamedStacks = 1024;

// Names the most important of them. `names`: by input.
void name_stacks(Symbolizer& symbolizer, std::span<NativeNames> names,
                 std::vector<StackToName> stacks);

// The stacks of a replay, with the most that each ever held at a step's end.
void add_stacks(size_t input, const ReplayResult& replay, std::vector<StackToName>& stacks);

}  // namespace memscope
