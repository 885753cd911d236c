// How PyTorch's caching allocator and torch_npu's round and size, as far as a history alone needs
// it. (c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize and the constants beside it, round_size().)
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace memscope {

inline constexpr uint64_t kPoolMinBlock = 512;
inline constexpr uint64_t kPoolSmallSize = uint64_t{1} << 20;  // up to it: the small pool
inline constexpr uint64_t kPoolSmallSegment = uint64_t{2} << 20;
inline constexpr uint64_t kPoolLargeSegment = uint64_t{20} << 20;
inline constexpr uint64_t kPoolMinLarge = uint64_t{10} << 20;  // from it: a segment of its own
inline constexpr uint64_t kPoolRoundLarge = uint64_t{2} << 20;
inline constexpr uint64_t kPoolNpuPad = 32;  // torch_npu asks for that much more

struct PoolRounding {
  uint64_t pad = 0;  // bytes that are added to a request
  // roundup_power2_divisions: of requests of 2^i MiB and more, the last of all larger ones too.
  std::array<uint32_t, 16> divisions{};
  friend bool operator==(const PoolRounding&, const PoolRounding&) = default;
};

inline uint64_t round_up(uint64_t size, uint64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// The size of the block that a request of `request` bytes, less than 2^60, gets where it is cut to
// measure.
inline uint64_t rounded_request(uint64_t request, const PoolRounding& rounding) {
  const uint64_t size = request + rounding.pad;
  if (size < kPoolMinBlock) return kPoolMinBlock;
  const int power = std::bit_width(size) - 1;
  const uint32_t divisions = rounding.divisions[static_cast<size_t>(std::clamp(power - 20, 0, 15))];
  if (divisions > 1 && size > kPoolMinBlock * divisions) {
    const uint64_t floor = uint64_t{1} << power;
    if (size == floor) return size;
    const uint64_t step = floor >> (std::bit_width(divisions) - 1);
    return step == 0 ? 2 * floor : round_up(size, step);
  }
  return round_up(size, kPoolMinBlock);
}

}  // namespace memscope
