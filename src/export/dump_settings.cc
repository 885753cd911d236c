#include "export/dump_settings.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace memscope {
namespace {

std::vector<std::string_view> items_of(std::string_view list) {
  std::vector<std::string_view> items;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) items.push_back(item);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return items;
}

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The depth of "python:5" or "python" where `item` is about `kind`.
bool depth_of(std::string_view item, std::string_view kind, std::optional<uint32_t>& depth) {
  if (item == kind) {
    depth = kDefaultStackDepth;
    return true;
  }
  if (!item.starts_with(kind) || item.size() <= kind.size() || item[kind.size()] != ':') {
    return false;
  }
  depth = number(item.substr(kind.size() + 1));
  return depth.has_value() && *depth <= 1000;
}

}  // namespace

bool set_call_stack(DumpSettings& settings, std::string_view list) {
  settings.python_depth = settings.c_depth = std::nullopt;
  for (const std::string_view item : items_of(list)) {
    if (item == "none") continue;
    if (!depth_of(item, "python", settings.python_depth) &&
        !depth_of(item, "c", settings.c_depth)) {
      return false;
    }
  }
  return true;
}

bool set_events(DumpSettings& settings, std::string_view list) {
  settings.alloc = settings.free = settings.launch = settings.access = false;
  bool none = false, good = true;
  for (const std::string_view item : items_of(list)) {
    if (item == "alloc") {
      settings.alloc = true;
    } else if (item == "free") {
      settings.free = true;
    } else if (item == "launch") {
      settings.launch = true;
    } else if (item == "access") {
      settings.access = true;
    } else if (item == "none") {
      none = true;
    } else if (item != "traceback") {
      good = false;
    }
  }
  if (none) settings.alloc = settings.free = settings.launch = settings.access = false;
  return good;
}

DumpSettings settings_of(const std::map<std::string, std::string>& configs) {
  DumpSettings settings;
  settings.python_depth = kDefaultStackDepth;
  const auto value = [&](const char* key) -> std::string_view {
    const auto at = configs.find(key);
    return at == configs.end() ? std::string_view() : std::string_view(at->second);
  };
  if (const auto stacks = value("call_stack"); !stacks.empty()) {
    if (!set_call_stack(settings, stacks)) settings.python_depth = kDefaultStackDepth;
  }
  if (const auto events = value("events"); !events.empty()) {
    if (!set_events(settings, events)) {
      settings.alloc = settings.free = settings.launch = settings.access = true;
    }
  }
  for (const std::string_view item : items_of(value("analysis"))) {
    if (item == "decompose") settings.decompose = true;
    if (item == "inefficient") settings.inefficient = true;
    if (item.starts_with("oom")) {
      constexpr uint32_t kDefaultTop = 10;
      settings.oom_top =
          item.size() > 4 ? number(item.substr(4)).value_or(kDefaultTop) : kDefaultTop;
    }
  }
  return settings;
}

}  // namespace memscope
