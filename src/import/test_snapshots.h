// Snapshots for this room's tests: told as JSON, written as any of the writers would.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "import/test_pickles.h"

namespace memscope {

using SnapshotJson = nlohmann::ordered_json;

inline void write_value(Pickle& pickle, const SnapshotJson& value, const std::string& key = "") {
  if (value.is_null()) {
    pickle.raw("N");
  } else if (value.is_boolean()) {
    pickle.raw(value.get<bool>() ? "\x88" : "\x89");
  } else if (value.is_number_integer()) {
    pickle.integer(value.get<uint64_t>());
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    pickle.raw("G");
    for (int shift = 56; shift >= 0; shift -= 8) pickle.byte(bits >> shift & 255u);
  } else if (value.is_string()) {
    pickle.text(value.get<std::string>());
  } else if (value.is_array() && key.ends_with("pool_id")) {
    pickle.pair(value[0].get<uint64_t>(), value[1].get<uint64_t>());
  } else if (value.is_array()) {
    // Python ends a batch after 1,000 items, and begins none for a single one.
    pickle.list();
    const bool single = value.size() == 1 && pickle.style() != PickleStyle::kTorch;
    if (single) {
      write_value(pickle, value[0]);
      pickle.raw("a");
    } else if (!value.empty() || pickle.style() == PickleStyle::kTorch) {
      pickle.mark();
      for (size_t i = 0; i < value.size(); ++i) {
        if (i != 0 && i % 1000 == 0 && pickle.style() != PickleStyle::kTorch) {
          pickle.appends().mark();
        }
        write_value(pickle, value[i]);
      }
      pickle.appends();
    }
  } else {
    pickle.dict();
    const bool single = value.size() == 1 && pickle.style() != PickleStyle::kTorch;
    if (!single && !value.empty()) pickle.mark();
    for (const auto& [name, each] : value.items()) {
      pickle.text(name);
      write_value(pickle, each, name);
    }
    if (!value.empty()) pickle.raw(single ? "s" : "u");
  }
}

inline std::string pickled(const SnapshotJson& snapshot,
                           PickleStyle style = PickleStyle::kPython4) {
  Pickle pickle(style);
  write_value(pickle, snapshot);
  return pickle.end();
}

constexpr uint64_t kMiB = uint64_t{1} << 20;

inline SnapshotJson frame(const char* file, int line, const char* name) {
  return {{"filename", file}, {"name", name}, {"line", line}};
}

// An entry of device_traces; size as requested.
inline SnapshotJson trace_entry(const char* action, uint64_t addr, uint64_t size,
                                uint64_t time_us = 0, SnapshotJson frames = SnapshotJson::array()) {
  SnapshotJson entry{{"action", action},
                     {"addr", addr},
                     {"size", size},
                     {"stream", 0},
                     {"frames", std::move(frames)}};
  if (time_us != 0) entry["time_us"] = time_us;
  return entry;
}

inline SnapshotJson block(uint64_t size, uint64_t requested, const char* state = "active_allocated",
                          SnapshotJson frames = SnapshotJson::array()) {
  return {{"size", size},
          {"requested_size", requested},
          {"state", state},
          {"frames", std::move(frames)}};
}

// A segment whose blocks follow each other; its sums are theirs.
inline SnapshotJson segment(uint64_t addr, const char* type, const SnapshotJson& blocks,
                            bool expandable = false, int device = 0) {
  uint64_t total = 0, allocated = 0, active = 0, requested = 0;
  SnapshotJson list = SnapshotJson::array();
  for (const SnapshotJson& one : blocks) {
    SnapshotJson placed{{"address", addr + total}};
    placed.update(one);
    list.push_back(placed);
    const auto size = one["size"].get<uint64_t>();
    const auto state = one["state"].get<std::string>();
    total += size;
    if (state == "inactive") continue;
    active += size;
    requested += one["requested_size"].get<uint64_t>();
    if (state == "active_allocated") allocated += size;
  }
  return {{"device", device},
          {"address", addr},
          {"total_size", total},
          {"allocated_size", allocated},
          {"active_size", active},
          {"requested_size", requested},
          {"stream", 0},
          {"segment_type", type},
          {"segment_pool_id", {0, 0}},
          {"is_expandable", expandable},
          {"frames", SnapshotJson::array()},
          {"blocks", list}};
}

}  // namespace memscope
