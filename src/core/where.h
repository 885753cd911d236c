// Where memory lives: a layer (who hands it out) on a device, packed into 16 bits.
//
//    15    12 11        7 6           0
//   +--------+-----------+-------------+
//   | layer  | dev. type | dev. index  |     index 127 = "the only one" (cpu)
//   +--------+-----------+-------------+
//
// Device types are numbered as c10::DeviceType is (c10/core/DeviceType.h), so that the torch source
// stores what it is given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace memscope {

enum class Layer : uint8_t {
  kDriver = 0,     // HAL, CUDA driver
  kPool = 1,       // a caching allocator: PTA, PyTorch CUDA
  kTensor = 2,     // torch's CPU allocator, which caches nothing
  kWorkspace = 3,  // the framework's workspace allocator
  kHost = 4,       // malloc, mmap
  kPinned = 5,     // page-locked host memory
  kPython = 6,     // CPython's own objects
  // Other frameworks' pools on the same device, kept apart from kPool because their totals are
  // their own; called "pool" as well.
  kPoolMindSpore = 7,
  kPoolAtb = 8,
};
inline constexpr int kLayerCount = 9;

constexpr bool is_pool(Layer layer) {
  return layer == Layer::kPool || layer == Layer::kPoolMindSpore || layer == Layer::kPoolAtb;
}

// "driver", "pool", ... as in `analyze --json`; "?" for a value outside the enum.
std::string_view layer_name(Layer layer);
// The first layer of that name.
std::optional<Layer> layer_from_name(std::string_view name);

struct Device {
  static constexpr uint8_t kCpu = 0, kCuda = 1, kXpu = 12, kNpu = 20;
  static constexpr uint8_t kNoIndex = 127;
  uint8_t type = kCpu;       // c10::DeviceType, 0..31
  uint8_t index = kNoIndex;  // 0..126; kNoIndex where the type has one device only
  friend constexpr auto operator<=>(Device, Device) = default;
};

// "cpu", "cuda:0", "npu:3", "device7:0" for types without a name here.
std::string device_name(Device device);
// The inverse; "cuda" alone is cuda:0. nullopt for anything else.
std::optional<Device> device_from_name(std::string_view name);

struct Where {
  Layer layer = Layer::kTensor;
  Device device;

  constexpr uint16_t packed() const {
    return static_cast<uint16_t>(static_cast<unsigned>(layer) << 12 | (device.type & 31u) << 7 |
                                 (device.index & 127u));
  }
  static constexpr Where unpack(uint16_t bits) {
    return {static_cast<Layer>(bits >> 12),
            {static_cast<uint8_t>(bits >> 7 & 31u), static_cast<uint8_t>(bits & 127u)}};
  }
  friend constexpr auto operator<=>(Where, Where) = default;
};

}  // namespace memscope
