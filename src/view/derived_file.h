// What was derived from a pool (orders, colours, the sites' histories), kept in its index's
// directory so that the next time nothing need be made before the first picture.
//
// Files beside the index's own: "p0.rank.lifetime" and "p0.at.lifetime" (an order), "p0.class.site"
// and "p0.legend.site" (a colouring), "p0.sites", "p0.pictures". What is missing, of another length
// or damaged is no error: it is made anew.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "view/block_order.h"
#include "view/colouring.h"
#include "view/site_table.h"

namespace memscope::view {

// A pool's files in the directory of its index.
struct DerivedFiles {
  std::filesystem::path directory;  // "": there is none
  size_t pool = 0;

  bool any() const { return !directory.empty(); }
  std::filesystem::path path(std::string_view kind, std::string_view name = {}) const;
};

// Null where it is not there; false where it could not be kept.
std::unique_ptr<BlockOrder> load_order(const DerivedFiles& files, const PoolIndex& pool,
                                       OrderBy by);
bool save_order(const DerivedFiles& files, const BlockOrder& order, OrderBy by);

std::unique_ptr<Colouring> load_colouring(const DerivedFiles& files, const PoolIndex& pool,
                                          ColourBy by);
bool save_colouring(const DerivedFiles& files, const Colouring& colouring, ColourBy by);

// Of this warm-up.
std::shared_ptr<const SiteHistories> load_sites(const DerivedFiles& files, const InputIndex& input,
                                                uint32_t warmup);
bool save_sites(const DerivedFiles& files, const SiteHistories& sites, uint32_t warmup);

// Answers that are pictures of the whole run, by their requests: at most `most`.
using Pictures = std::vector<std::pair<std::string, std::string>>;
Pictures load_pictures(const DerivedFiles& files, size_t most);
bool save_pictures(const DerivedFiles& files, const Pictures& pictures);

}  // namespace memscope::view
