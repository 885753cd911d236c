#include "view/derived_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>

#include "view/index_file.h"
#include "view/table_io.h"

namespace memscope::view {
namespace {

constexpr uint64_t kMagic = 0x3176'6972'4453'4d4d;  // "MMSDriv1"

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

template <typename Io>
void legend(Io& io, std::vector<ColourClass>& classes) {
  io_list(io, classes, [&](ColourClass& c) {
    io(c.name), io(c.detail), io(c.key), io(c.from), io(c.to), io(c.bytes), io(c.blocks);
    io(c.peak), io(c.hue);
  });
}

template <typename Io>
void histories(Io& io, SiteHistories& sites) {
  io_list(io, sites.sites, [&](uint32_t& site) { io(site); });
  io_list(io, sites.of_site, [&](SiteHistory& h) {
    io(h.peak), io(h.peak_time), io(h.blocks), io(h.freed), io(h.lifetimes), io(h.owner);
    bool known = h.bytes_per_step.has_value();
    double slope = h.bytes_per_step.value_or(0);
    io(known), io(slope);
    if (known) h.bytes_per_step = slope;
    for (float& value : h.spark) io(value);
  });
}

}  // namespace

std::filesystem::path DerivedFiles::path(std::string_view kind, std::string_view name) const {
  std::string file = "p" + std::to_string(pool) + ".";
  file += kind;
  if (!name.empty()) {
    file += '.';
    file += name;
  }
  return directory / file;
}

std::unique_ptr<BlockOrder> load_order(const DerivedFiles& files, const PoolIndex& pool,
                                       OrderBy by) {
  if (!files.any() || by == OrderBy::kAlloc) return nullptr;
  const size_t count = pool.blocks() + size_t{1};
  auto rank = FileVector<uint32_t>::map(files.path("rank", order_name(by)), count);
  auto block = FileVector<uint32_t>::map(files.path("at", order_name(by)), count);
  if (!rank || !block) return nullptr;
  // Both are used as indices.
  const auto sound = [&](const FileVector<uint32_t>& column) {
    return *std::max_element(column.begin(), column.end()) < count;
  };
  if (!sound(rank.value()) || !sound(block.value())) return nullptr;
  return std::make_unique<BlockOrder>(std::move(rank).value(), std::move(block).value());
}

bool save_order(const DerivedFiles& files, const BlockOrder& order, OrderBy by) {
  return write_whole(files.path("rank", order_name(by)), bytes_of(order.rank_column())) &&
         write_whole(files.path("at", order_name(by)), bytes_of(order.block_column()));
}

std::unique_ptr<Colouring> load_colouring(const DerivedFiles& files, const PoolIndex& pool,
                                          ColourBy by) {
  if (!files.any()) return nullptr;
  const std::string bytes = read_whole(files.path("legend", colour_name(by)));
  TableReader io(bytes);
  auto colouring = std::make_unique<Colouring>();
  if (!io_heading(io, kMagic, kIndexVersion)) return nullptr;
  legend(io, colouring->classes);
  if (!io.ok() || !io.at_end() || colouring->classes.empty() ||
      colouring->classes.size() > kMaxClasses) {
    return nullptr;
  }
  auto classes =
      FileVector<uint8_t>::map(files.path("class", colour_name(by)), pool.blocks() + size_t{1});
  if (!classes) return nullptr;
  colouring->of_block = std::move(classes).value();
  const auto& column = colouring->of_block;
  if (*std::max_element(column.begin(), column.end()) >= colouring->classes.size()) return nullptr;
  return colouring;
}

bool save_colouring(const DerivedFiles& files, const Colouring& colouring, ColourBy by) {
  TableWriter io;
  io_heading(io, kMagic, kIndexVersion);
  std::vector<ColourClass> classes = colouring.classes;
  legend(io, classes);
  return write_whole(files.path("class", colour_name(by)), bytes_of(colouring.of_block.span())) &&
         write_whole(files.path("legend", colour_name(by)), io.bytes());
}

std::shared_ptr<const SiteHistories> load_sites(const DerivedFiles& files, const InputIndex& input,
                                                uint32_t warmup) {
  if (!files.any()) return nullptr;
  const std::string bytes = read_whole(files.path("sites"));
  TableReader io(bytes);
  auto sites = std::make_shared<SiteHistories>();
  uint32_t known = 0;
  if (!io_heading(io, kMagic, kIndexVersion)) return nullptr;
  io(known);
  histories(io, *sites);
  if (!io.ok() || !io.at_end() || known != warmup || sites->sites.size() != sites->of_site.size()) {
    return nullptr;
  }
  const auto stray = [&](uint32_t site) { return site >= input.site_count(); };
  if (std::any_of(sites->sites.begin(), sites->sites.end(), stray)) return nullptr;
  const auto owned = [&](const SiteHistory& h) { return h.owner < input.owners.size(); };
  return std::all_of(sites->of_site.begin(), sites->of_site.end(), owned) ? sites : nullptr;
}

Pictures load_pictures(const DerivedFiles& files, size_t most) {
  if (!files.any()) return {};
  const std::string bytes = read_whole(files.path("pictures"));
  TableReader io(bytes);
  Pictures pictures;
  if (!io_heading(io, kMagic, kIndexVersion)) return {};
  io_list(io, pictures, [&](auto& picture) { io(picture.first), io(picture.second); });
  if (!io.ok() || !io.at_end() || pictures.size() > most) return {};
  return pictures;
}

bool save_pictures(const DerivedFiles& files, const Pictures& pictures) {
  TableWriter io;
  io_heading(io, kMagic, kIndexVersion);
  Pictures copy = pictures;
  io_list(io, copy, [&](auto& picture) { io(picture.first), io(picture.second); });
  return write_whole(files.path("pictures"), io.bytes());
}

bool save_sites(const DerivedFiles& files, const SiteHistories& sites, uint32_t warmup) {
  TableWriter io;
  io_heading(io, kMagic, kIndexVersion);
  io(warmup);
  SiteHistories copy = sites;
  histories(io, copy);
  return write_whole(files.path("sites"), io.bytes());
}

}  // namespace memscope::view
