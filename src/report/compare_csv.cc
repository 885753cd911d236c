#include "report/compare_csv.h"

#include <fmt/format.h>

#include <cstdlib>

#include "report/format.h"

namespace memscope {
namespace {

// As msMemScope writes a device: the number of an accelerator, "cpu".
std::string device_id(const DeviceOperators& device) {
  const Device one = device.base ? *device.base : device.compare.value_or(Device{});
  return one.index == Device::kNoIndex ? device_name(one) : std::to_string(one.index);
}

std::string field(std::string_view text) {
  if (text.empty()) return "N/A";  // as dumps have it where the name is not known
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string value(const std::optional<int64_t>& bytes) {
  return bytes ? std::to_string(*bytes) : "N/A";
}

std::string signed_bytes(int64_t bytes) {
  return format_bytes_change(static_cast<double>(bytes));
}

}  // namespace

std::string compare_csv_rows(std::span<const DeviceOperators> devices, OperatorLevel level,
                             const StringTable& names) {
  const char* event = level == OperatorLevel::kKernel ? "KERNEL_LAUNCH" : "OP_LAUNCH";
  std::string out;
  for (const DeviceOperators& device : devices) {
    const std::string id = device_id(device);
    for (const OperatorPair& row : device.rows) {
      fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{}\n", event,
                     field(names.text(row.name)), id, value(row.base), value(row.compare),
                     row.difference());
    }
  }
  return out;
}

std::string compare_csv_summary(std::span<const DeviceOperators> devices, OperatorLevel level) {
  const char* noun = level == OperatorLevel::kKernel ? "kernel" : "operator";
  std::string out;
  for (const DeviceOperators& device : devices) {
    int64_t both = 0, only_base = 0, only_compare = 0, differ = 0;
    for (const OperatorPair& row : device.rows) {
      both += row.base && row.compare ? 1 : 0;
      only_base += row.compare ? 0 : 1;
      only_compare += row.base ? 0 : 1;
      differ += row.difference() != 0 ? 1 : 0;
    }
    std::string name = device.base ? device_name(*device.base) : device_name(*device.compare);
    if (device.base && device.compare && *device.base != *device.compare) {
      name += " against " + device_name(*device.compare);
    }
    out += fmt::format("{}: {}, {} in both, {} only in base, {} only in compare; {} differ\n", name,
                       format_plural(static_cast<int64_t>(device.rows.size()), noun),
                       format_count(both), format_count(only_base), format_count(only_compare),
                       format_count(differ));
    if (device.base_outside != 0 || device.compare_outside != 0) {
      out += fmt::format("  in {}s {} against {}, outside them {} against {}\n", noun,
                         signed_bytes(device.base_total), signed_bytes(device.compare_total),
                         signed_bytes(device.base_outside), signed_bytes(device.compare_outside));
    }
    if (!device.shortest) {
      out += fmt::format(
          "  too different to find the best alignment: exact for the first {} rows, approximate "
          "for the other {}\n",
          format_count(device.exact_rows),
          format_count(static_cast<int64_t>(device.rows.size()) - device.exact_rows));
    }
  }
  return out;
}

}  // namespace memscope
