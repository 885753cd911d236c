#include "view/derived_file.h"

#include <gtest/gtest.h>

#include "trace/test_directory.h"
#include "view/pool_views.h"
#include "view/test_index.h"

namespace memscope::view {
namespace {

TEST(DerivedFile, AnOrderComesBackAsItWas) {
  const TestDirectory directory;
  const auto input = random_index(3, 4000);
  const PoolIndex& pool = *input->pools[0];
  const DerivedFiles files{directory.path(), 0};
  EXPECT_EQ(load_order(files, pool, OrderBy::kLifetime), nullptr);
  const BlockOrder made(*input, pool, OrderBy::kLifetime);
  ASSERT_TRUE(save_order(files, made, OrderBy::kLifetime));
  const auto order = load_order(files, pool, OrderBy::kLifetime);
  ASSERT_NE(order, nullptr);
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    ASSERT_EQ(order->rank(block), made.rank(block));
    ASSERT_EQ(order->block(order->rank(block)), block);
  }
  EXPECT_EQ(load_order(files, pool, OrderBy::kSite), nullptr);
  // Another pool's files are others.
  EXPECT_EQ(load_order({directory.path(), 1}, pool, OrderBy::kLifetime), nullptr);
}

TEST(DerivedFile, ColoursComeBackAsTheyWere) {
  const TestDirectory directory;
  const auto input = random_index(4, 4000);
  const PoolIndex& pool = *input->pools[0];
  const DerivedFiles files{directory.path(), 0};
  const Colouring made(*input, pool, ColourBy::kSite, {});
  ASSERT_TRUE(save_colouring(files, made, ColourBy::kSite));
  const auto colouring = load_colouring(files, pool, ColourBy::kSite);
  ASSERT_NE(colouring, nullptr);
  ASSERT_EQ(colouring->classes.size(), made.classes.size());
  for (size_t i = 0; i < made.classes.size(); ++i) {
    EXPECT_EQ(colouring->classes[i].name, made.classes[i].name);
    EXPECT_EQ(colouring->classes[i].key, made.classes[i].key);
    EXPECT_EQ(colouring->classes[i].peak, made.classes[i].peak);
    EXPECT_EQ(colouring->classes[i].hue, made.classes[i].hue);
  }
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    ASSERT_EQ(colouring->of_block[block], made.of_block[block]);
  }
}

TEST(DerivedFile, HistoriesOfSitesAreThoseOfTheirWarmUp) {
  const TestDirectory directory;
  const auto input = random_index(5, 4000);
  const DerivedFiles files{directory.path(), 0};
  const SiteHistories made = site_histories(*input, *input->pools[0], 2);
  ASSERT_TRUE(save_sites(files, made, 2));
  EXPECT_EQ(load_sites(files, *input, 3), nullptr);
  const auto sites = load_sites(files, *input, 2);
  ASSERT_NE(sites, nullptr);
  EXPECT_EQ(sites->sites, made.sites);
  ASSERT_EQ(sites->of_site.size(), made.of_site.size());
  for (size_t i = 0; i < made.of_site.size(); ++i) {
    EXPECT_EQ(sites->of_site[i].peak, made.of_site[i].peak);
    EXPECT_EQ(sites->of_site[i].bytes_per_step, made.of_site[i].bytes_per_step);
    EXPECT_EQ(sites->of_site[i].spark, made.of_site[i].spark);
  }
}

TEST(DerivedFile, WhatIsDamagedIsNotTaken) {
  const TestDirectory directory;
  const auto input = random_index(6, 400, 3);
  const PoolIndex& pool = *input->pools[0];
  const DerivedFiles files{directory.path(), 0};
  save_order(files, BlockOrder(*input, pool, OrderBy::kSite), OrderBy::kSite);
  save_colouring(files, Colouring(*input, pool, ColourBy::kSite, {}), ColourBy::kSite);
  save_sites(files, site_histories(*input, pool, 0), 0);
  ASSERT_NE(load_order(files, pool, OrderBy::kSite), nullptr);
  // A rank that is no block's.
  const std::string rank = read_bytes(directory / "p0.rank.site");
  std::string wrong = rank;
  wrong[rank.size() - 1] = '\x7f';
  write_bytes(directory / "p0.rank.site", wrong);
  EXPECT_EQ(load_order(files, pool, OrderBy::kSite), nullptr);
  write_bytes(directory / "p0.rank.site", rank.substr(4));
  EXPECT_EQ(load_order(files, pool, OrderBy::kSite), nullptr);
  // A class that the legend does not have.
  const std::string classes = read_bytes(directory / "p0.class.site");
  write_bytes(directory / "p0.class.site", classes.substr(1) + '\x20');
  EXPECT_EQ(load_colouring(files, pool, ColourBy::kSite), nullptr);
  write_bytes(directory / "p0.class.site", classes);
  ASSERT_NE(load_colouring(files, pool, ColourBy::kSite), nullptr);
  // Tables cut anywhere, or with a byte more.
  for (const char* name : {"p0.legend.site", "p0.sites"}) {
    const std::string table = read_bytes(directory / name);
    const auto taken = [&] {
      return std::string_view(name) == "p0.sites"
                 ? load_sites(files, *input, 0) != nullptr
                 : load_colouring(files, pool, ColourBy::kSite) != nullptr;
    };
    ASSERT_TRUE(taken());
    for (size_t size = 0; size < table.size(); size += table.size() / 97 + 1) {
      write_bytes(directory / name, table.substr(0, size));
      ASSERT_FALSE(taken()) << name << " " << size;
    }
    write_bytes(directory / name, table + "x");
    EXPECT_FALSE(taken());
    write_bytes(directory / name, table);
  }
}

TEST(PoolViews, WhatWasMadeIsThereTheNextTime) {
  const TestDirectory directory;
  const auto input = random_index(7, 210'000);
  {
    const PoolViews views(input, 0);
    views.order(OrderBy::kLifetime);
    views.colouring(ColourBy::kSite);
    views.sites(1);
    EXPECT_TRUE(views.unkept());
    views.lies_in(directory.path());
    views.keep();
    EXPECT_FALSE(views.unkept());
  }
  const PoolViews views(input, 0, directory.path());
  views.warm();
  views.order(OrderBy::kLifetime);
  views.colouring(ColourBy::kSite);
  views.sites(1);
  EXPECT_FALSE(views.unkept());  // nothing had to be made
  views.order(OrderBy::kSite);
  EXPECT_TRUE(views.unkept());
}

TEST(PoolViews, ThePictureOfTheWholeRunIsThereTheNextTime) {
  const TestDirectory directory;
  const auto input = random_index(7, 210'000);
  int made = 0;
  const auto draw = [&] { return "picture " + std::to_string(++made); };
  {
    const PoolViews views(input, 0, directory.path());
    EXPECT_EQ(*views.answer("whole", draw, true), "picture 1");
    EXPECT_EQ(*views.answer("window", draw), "picture 2");
    EXPECT_EQ(*views.answer("whole", draw, true), "picture 1");
    views.keep();
  }
  const PoolViews views(input, 0, directory.path());
  EXPECT_EQ(*views.answer("whole", draw, true), "picture 1");
  EXPECT_EQ(*views.answer("window", draw), "picture 3");
  EXPECT_EQ(*views.answer("wider", draw, true), "picture 4");
  EXPECT_TRUE(views.unkept());
  // Damaged: drawn anew.
  const std::string table = read_bytes(directory / "p0.pictures");
  write_bytes(directory / "p0.pictures", table.substr(0, table.size() - 1));
  const PoolViews third(input, 0, directory.path());
  EXPECT_EQ(*third.answer("whole", draw, true), "picture 5");
}

TEST(PoolViews, WhatIsMadeInNoTimeIsNotKept) {
  const TestDirectory directory;
  const PoolViews views(random_index(8, 1000), 0, directory.path());
  views.order(OrderBy::kLifetime);
  views.keep();
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace memscope::view
