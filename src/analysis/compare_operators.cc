#include "analysis/compare_operators.h"

#include <set>

namespace memscope {
namespace {

std::vector<uint32_t> names_of(const std::vector<OperatorValue>& values) {
  std::vector<uint32_t> names;
  names.reserve(values.size());
  for (const OperatorValue& value : values) names.push_back(value.name.value);
  return names;
}

const std::vector<OperatorValue>& values_of(const OperatorRun& run,
                                            const std::optional<Device>& device) {
  static const std::vector<OperatorValue> kNone;
  if (!device) return kNone;
  const auto found = run.devices.find(*device);
  return found == run.devices.end() ? kNone : found->second;
}

int64_t outside_of(const OperatorRun& run, const std::optional<Device>& device) {
  if (!device) return 0;
  const auto found = run.outside.find(*device);
  return found == run.outside.end() ? 0 : found->second;
}

DeviceOperators compare_device(const OperatorRun& base_run, const OperatorRun& compare_run,
                               std::optional<Device> base_device,
                               std::optional<Device> compare_device, const AlignLimits& limits) {
  DeviceOperators result{.base = base_device, .compare = compare_device};
  const std::vector<OperatorValue>& base = values_of(base_run, base_device);
  const std::vector<OperatorValue>& compare = values_of(compare_run, compare_device);
  const Alignment alignment = align(names_of(base), names_of(compare), limits);
  result.shortest = alignment.shortest;
  size_t a = 0, b = 0;
  const auto add = [&](const OperatorPair& row) {
    const bool exact =
        alignment.shortest || a < alignment.exact_base || b < alignment.exact_compare;
    if (exact) ++result.exact_rows;
    result.rows.push_back(row);
  };
  const auto one_sided = [&](size_t base_end, size_t compare_end) {
    for (; a < base_end; ++a) add({base[a].name, base[a].bytes, std::nullopt});
    for (; b < compare_end; ++b) add({compare[b].name, std::nullopt, compare[b].bytes});
  };
  for (const AlignedRun& run : alignment.runs) {
    one_sided(run.base_at, run.compare_at);
    for (uint32_t i = 0; i < run.length; ++i, ++a, ++b) {
      add({base[a].name, base[a].bytes, compare[b].bytes});
    }
  }
  one_sided(base.size(), compare.size());
  for (const OperatorPair& row : result.rows) {
    result.base_total += row.base.value_or(0);
    result.compare_total += row.compare.value_or(0);
  }
  result.base_outside = outside_of(base_run, base_device);
  result.compare_outside = outside_of(compare_run, compare_device);
  return result;
}

}  // namespace

std::vector<DeviceOperators> compare_operators(const OperatorRun& base, const OperatorRun& compare,
                                               const AlignLimits& limits) {
  std::vector<DeviceOperators> result;
  if (base.devices.size() == 1 && compare.devices.size() == 1) {
    result.push_back(compare_device(base, compare, base.devices.begin()->first,
                                    compare.devices.begin()->first, limits));
    return result;
  }
  std::set<Device> devices;
  for (const OperatorRun* run : {&base, &compare}) {
    for (const auto& [device, values] : run->devices) devices.insert(device);
  }
  for (const Device device : devices) {
    const auto in = [&](const OperatorRun& run) {
      return run.devices.contains(device) ? std::optional(device) : std::nullopt;
    };
    result.push_back(compare_device(base, compare, in(base), in(compare), limits));
  }
  return result;
}

}  // namespace memscope
