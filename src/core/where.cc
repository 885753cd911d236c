#include "core/where.h"

#include <array>
#include <charconv>
#include <utility>

namespace memscope {
namespace {

constexpr std::array<std::string_view, kLayerCount> kLayerNames = {
    "driver", "pool", "tensor", "workspace", "host", "pinned", "python", "pool", "pool"};

constexpr std::array<std::pair<uint8_t, std::string_view>, 4> kDeviceTypes = {
    {{Device::kCpu, "cpu"}, {Device::kCuda, "cuda"}, {Device::kXpu, "xpu"}, {Device::kNpu, "npu"}}};

}  // namespace

std::string_view layer_name(Layer layer) {
  const auto i = static_cast<size_t>(layer);
  return i < kLayerNames.size() ? kLayerNames[i] : "?";
}

std::optional<Layer> layer_from_name(std::string_view name) {
  for (size_t i = 0; i < kLayerNames.size(); ++i) {
    if (kLayerNames[i] == name) return static_cast<Layer>(i);
  }
  return std::nullopt;
}

std::string device_name(Device device) {
  std::string name = "device" + std::to_string(device.type);
  for (const auto& [type, type_name] : kDeviceTypes) {
    if (type == device.type) name = type_name;
  }
  if (device.index != Device::kNoIndex) name += ":" + std::to_string(device.index);
  return name;
}

std::optional<Device> device_from_name(std::string_view name) {
  const size_t colon = name.find(':');
  const std::string_view type_name = name.substr(0, colon);
  std::optional<uint8_t> type;
  for (const auto& [number, known] : kDeviceTypes) {
    if (known == type_name) type = number;
  }
  constexpr std::string_view kNumbered = "device";
  if (!type && type_name.starts_with(kNumbered)) {
    const std::string_view digits = type_name.substr(kNumbered.size());
    unsigned number = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
    if (error != std::errc{} || end != digits.end() || number > 31) return std::nullopt;
    type = static_cast<uint8_t>(number);
  }
  if (!type) return std::nullopt;
  if (colon == std::string_view::npos) {
    return Device{*type, *type == Device::kCpu ? Device::kNoIndex : uint8_t{0}};
  }
  const std::string_view digits = name.substr(colon + 1);
  unsigned index = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), index);
  if (error != std::errc{} || end != digits.end() || index >= Device::kNoIndex) return std::nullopt;
  return Device{*type, static_cast<uint8_t>(index)};
}

}  // namespace memscope
