#include "analysis/compare.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "analysis/site_match.h"

namespace memscope {
namespace {

// Whether one layer hands out what another took: they are never added up.
bool contains(Layer outer, Layer inner) {
  if (outer == Layer::kDriver) return inner == Layer::kPool || inner == Layer::kWorkspace;
  return outer == Layer::kHost && (inner == Layer::kTensor || inner == Layer::kPython);
}

std::string device_kind(Device device) {
  const std::string name = device_name(device);
  return name.substr(0, name.find(':'));
}

std::map<std::string, std::set<Device>> devices_by_kind(const Holdings& holdings) {
  std::map<std::string, std::set<Device>> devices;
  for (const HeldInLayer& layer : holdings.layers) {
    devices[device_kind(layer.where.device)].insert(layer.where.device);
  }
  return devices;
}

// The kinds of which each side has devices, and none is the other's: two ranks' own. Where one is
// on both sides, memory that moved from device to device must show.
std::set<std::string> kinds_apart(const Holdings& base, const Holdings& now) {
  const auto of_base = devices_by_kind(base), of_now = devices_by_kind(now);
  std::set<std::string> kinds;
  for (const auto& [kind, devices] : of_base) {
    const auto other = of_now.find(kind);
    if (other == of_now.end()) continue;
    const bool shared = std::any_of(devices.begin(), devices.end(),
                                    [&](Device d) { return other->second.count(d) != 0; });
    if (!shared) kinds.insert(kind);
  }
  return kinds;
}

// A place as both sides call it.
struct Spot {
  std::string device;
  Layer layer = Layer::kTensor;
  friend auto operator<=>(const Spot&, const Spot&) = default;
};

// Names places, and knows which of them are compared.
class Spots {
 public:
  Spots(const Holdings& base, const Holdings& now, const CompareOptions& options)
      : options_(options), apart_(kinds_apart(base, now)) {
    for (const Holdings* side : {&base, &now}) {
      for (const HeldInLayer& layer : side->layers) seen_.insert(of(layer.where));
    }
  }

  Spot of(Where where) const {
    // Several frameworks' pools are all `pool` to the reader.
    std::string kind = device_kind(where.device);
    return {apart_.count(kind) != 0 ? std::move(kind) : device_name(where.device),
            is_pool(where.layer) ? Layer::kPool : where.layer};
  }
  bool counted(const Spot& spot) const {
    if (options_.layer) return spot.layer == *options_.layer;
    return std::none_of(seen_.begin(), seen_.end(), [&](const Spot& other) {
      // The host's memory is one, wherever tensors in it are said to be.
      return contains(spot.layer, other.layer) &&
             (spot.layer == Layer::kHost || spot.device == other.device);
    });
  }

 private:
  const CompareOptions& options_;
  std::set<std::string> apart_;
  std::set<Spot> seen_;
};

void add(std::optional<Held>& to, const Held& held) {
  if (!to) to = Held{};
  *to += held;
}

// -- rows -----------------------------------------------------------------------------------------

// Lines of one side in one place, each once.
struct SiteSums {
  std::vector<SiteFrame> sites;
  std::vector<Held> held;
  std::optional<Held> none;  // without a line
  std::map<std::tuple<std::string, int64_t, std::string>, size_t> index;

  void add_row(const HeldAtSite& row) {
    if (!row.site) return add(none, row.held);
    const SiteFrame& site = *row.site;
    const auto [at, fresh] = index.try_emplace(
        {site.file.value_or(""), site.line.value_or(0), site.function}, sites.size());
    if (fresh) {
      sites.push_back(site);
      held.emplace_back();
    }
    held[at->second] += row.held;
    // Of two processes one may not have the source.
    if (!sites[at->second].text && site.text) sites[at->second] = site;
  }
};

ComparedRow row_at(const Spot& spot) {
  return {.device = spot.device, .layer = std::string(layer_name(spot.layer))};
}

void compare_sites(const Spot& spot, const SiteSums& base, const SiteSums& now,
                   ComparedList& list) {
  std::vector<bool> base_taken(base.sites.size()), now_taken(now.sites.size());
  const auto add_row = [&](const std::optional<SiteFrame>& site, std::optional<Held> was,
                           std::optional<Held> is) {
    ComparedRow row = row_at(spot);
    row.site = site;
    row.change = {was, is};
    list.rows.push_back(std::move(row));
  };
  for (const auto& [b, n] : match_sites(base.sites, now.sites)) {
    base_taken[b] = now_taken[n] = true;
    add_row(now.sites[n], base.held[b], now.held[n]);
  }
  for (size_t b = 0; b < base.sites.size(); ++b) {
    if (!base_taken[b]) add_row(base.sites[b], base.held[b], std::nullopt);
  }
  for (size_t n = 0; n < now.sites.size(); ++n) {
    if (!now_taken[n]) add_row(now.sites[n], std::nullopt, now.held[n]);
  }
  if (base.none || now.none) add_row(std::nullopt, base.none, now.none);
}

ComparedList list_sites(const Spots& spots, const Holdings& base, const Holdings& now) {
  std::map<Spot, std::pair<SiteSums, SiteSums>> places;
  for (const HeldAtSite& row : base.sites) places[spots.of(row.where)].first.add_row(row);
  for (const HeldAtSite& row : now.sites) places[spots.of(row.where)].second.add_row(row);
  ComparedList list;
  for (const auto& [spot, sides] : places) {
    if (spots.counted(spot)) compare_sites(spot, sides.first, sides.second, list);
  }
  return list;
}

ComparedList list_names(const Spots& spots, const std::vector<HeldByName>& base,
                        const std::vector<HeldByName>& now) {
  std::map<std::pair<Spot, std::optional<std::string>>, Change> rows;
  for (const HeldByName& row : base) add(rows[{spots.of(row.where), row.name}].base, row.held);
  for (const HeldByName& row : now) add(rows[{spots.of(row.where), row.name}].now, row.held);
  ComparedList list;
  for (const auto& [key, change] : rows) {
    if (!spots.counted(key.first)) continue;
    ComparedRow row = row_at(key.first);
    row.name = key.second;
    row.change = change;
    list.rows.push_back(std::move(row));
  }
  return list;
}

void sort_by_growth(ComparedList& list) {
  std::stable_sort(list.rows.begin(), list.rows.end(),
                   [](const ComparedRow& a, const ComparedRow& b) {
                     const Held x = a.change.difference(), y = b.change.difference();
                     return x.bytes != y.bytes ? x.bytes > y.bytes : x.blocks > y.blocks;
                   });
}

std::vector<ComparedLayer> list_layers(const Spots& spots, const Holdings& base,
                                       const Holdings& now) {
  std::map<Spot, ComparedLayer> layers;
  const auto add_side = [&](const Holdings& holdings, bool is_base) {
    for (const HeldInLayer& in : holdings.layers) {
      const Spot spot = spots.of(in.where);
      ComparedLayer& layer = layers[spot];
      layer.device = spot.device;
      layer.layer = layer_name(spot.layer);
      layer.counted = spots.counted(spot);
      add(is_base ? layer.change.base : layer.change.now, in.held);
      (is_base ? layer.base_peak : layer.now_peak) += in.peak;
      std::optional<int64_t>& reserved = is_base ? layer.base_reserved : layer.now_reserved;
      if (in.reserved) reserved = reserved.value_or(0) + *in.reserved;
    }
  };
  add_side(base, true);
  add_side(now, false);
  std::vector<ComparedLayer> list;
  list.reserve(layers.size());
  for (auto& [spot, layer] : layers) list.push_back(std::move(layer));
  return list;
}

void describe_steps(const Holdings& holdings, ComparedSide& side) {
  side.steps_source = steps_from_name(holdings.steps_from);
  side.steps = holdings.steps;
}

void limit(ComparedList& list, size_t top, bool changed_only) {
  std::vector<ComparedRow*> order;
  for (ComparedRow& row : list.rows) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](const ComparedRow* a, const ComparedRow* b) {
    return std::llabs(a->change.difference().bytes) > std::llabs(b->change.difference().bytes);
  });
  std::vector<ComparedRow> kept;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool changed = order[i]->change.difference() != Held{};
    if (i < top && (changed || !changed_only)) {
      kept.push_back(std::move(*order[i]));
      continue;
    }
    ++list.rest_rows;
    if (changed) ++list.rest_changed;
    if (order[i]->change.base) add(list.rest.base, *order[i]->change.base);
    if (order[i]->change.now) add(list.rest.now, *order[i]->change.now);
  }
  list.rows = std::move(kept);
  sort_by_growth(list);
}

}  // namespace

Comparison compare(const Holdings& base, const Holdings& now, const CompareOptions& options) {
  const Spots spots(base, now, options);
  Comparison result;
  describe_steps(base, result.base);
  describe_steps(now, result.now);
  result.layers = list_layers(spots, base, now);
  result.total = {Held{}, Held{}};
  for (const ComparedLayer& layer : result.layers) {
    if (!layer.counted) continue;
    *result.total.base += layer.change.base.value_or(Held{});
    *result.total.now += layer.change.now.value_or(Held{});
  }
  result.sites = list_sites(spots, base, now);
  result.owners = list_names(spots, base.owners, now.owners);
  result.operators = list_names(spots, base.operators, now.operators);
  for (ComparedList* list : {&result.sites, &result.owners, &result.operators}) {
    sort_by_growth(*list);
  }
  return result;
}

void limit_rows(Comparison& comparison, size_t top, bool changed_only) {
  for (ComparedList* list : {&comparison.sites, &comparison.owners, &comparison.operators}) {
    limit(*list, top, changed_only);
  }
}

}  // namespace memscope
