#include "analysis/pool_settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace memscope {
namespace {

constexpr uint64_t kNpuAlign = 16 << 10;

bool grows(const PoolHistory& history) {
  const auto is_range = [](const PoolSegment& segment) { return segment.expandable; };
  const auto maps = [](const PoolEntry& entry) {
    return entry.action == PoolAction::kSegmentMap || entry.action == PoolAction::kSegmentUnmap;
  };
  return std::any_of(history.segments.begin(), history.segments.end(), is_range) ||
         std::any_of(history.entries.begin(), history.entries.end(), maps);
}

std::string size_text(uint64_t bytes) {
  if (bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

}  // namespace

std::string PoolSettings::text() const {
  const PoolSettings usual;
  std::string text;
  const auto add = [&](bool differs, const std::string& what) {
    if (differs) text += (text.empty() ? "" : ", ") + what;
  };
  add(expandable, "expandable segments");
  add(rounding.pad != 0, "requests padded by " + size_text(rounding.pad));
  add(align != 0 && expandable, "aligned to " + size_text(align));
  add(large_page != usual.large_page && expandable, "pages of " + size_text(large_page));
  add(large_segment != usual.large_segment, "segments of " + size_text(large_segment));
  add(max_split != kUnlimited, "no split from " + size_text(max_split) + " on");
  add(gc_threshold > 0, "garbage collection");
  const auto divisions = std::max_element(rounding.divisions.begin(), rounding.divisions.end());
  add(*divisions > 1, "requests rounded to 1/" + std::to_string(*divisions) + " of a power of two");
  return text.empty() ? "default settings" : text;
}

PoolSettings settings_of(const PoolHistory& history, const PoolRounding& rounding,
                         const std::map<std::string, std::string>& told) {
  PoolSettings settings;
  settings.rounding = rounding;
  settings.expandable = grows(history);
  if (history.device.type == Device::kNpu) settings.align = kNpuAlign;
  const auto find = [&](const char* name) {
    const auto setting = told.find(name);
    return setting == told.end() ? std::string() : setting->second;
  };
  if (const std::string value = find("expandable_segments"); !value.empty()) {
    // A run that turned it on later has both.
    settings.expandable = settings.expandable || value == "True";
  }
  const std::string split = find("max_split_size");
  int64_t bytes = -1;
  std::from_chars(split.data(), split.data() + split.size(), bytes);
  if (bytes > 0) settings.max_split = static_cast<uint64_t>(bytes);
  if (const std::string value = find("garbage_collection_threshold"); !value.empty()) {
    settings.gc_threshold = std::strtod(value.c_str(), nullptr);
  }
  return settings;
}

}  // namespace memscope
