#include "view/name_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "symbols/look_up_fixture.h"
#include "trace/test_directory.h"
#include "view/rows.h"
#include "view/test_index.h"

namespace memscope::view {
namespace {

// Python calls a small library of the user's (symbols/look_up_fixture.h), which allocates; another
// stack has an address in a library that this machine does not have.
class NameTableTest : public ::testing::Test {
 protected:
  NameTableTest() {
    const StackId python = script_.line(9, "step");
    known_ = script_.native(python, library_, testing::build_id_of(library_),
                            testing::mark(library_, "mark_in"));
    unknown_ = script_.native(python, "/me/gone.so", "abcdef", 0x40);
    script_.alloc(0, 0xA0, 100, known_);
    script_.alloc(1, 0xB0, 10, unknown_);
    script_.free(2, 0xB0);
    index_ = script_.build();
  }
  static const SiteFrame& site(const InputIndex& index, StackId stack) {
    return index.site(index.site_of_stack(stack.value));
  }

  testing::Folder folder_;
  std::string library_ = testing::compile_shapes(folder_);
  IndexScript script_;
  StackId known_, unknown_;
  std::shared_ptr<InputIndex> index_;
};

TEST_F(NameTableTest, NamesMakeOtherSitesOfTheSameStacks) {
  // Without names the innermost line that is known is Python's.
  EXPECT_EQ(site(*index_, known_).file, "/home/me/train.py");
  EXPECT_TRUE(lacks_names(*index_, nullptr));
  NameMaker maker{SymbolOptions{}};
  const auto names = maker.make(*index_);
  EXPECT_TRUE(maker.in_time());
  EXPECT_FALSE(lacks_names(*index_, names.get()));
  const auto named = index_->named(names);
  EXPECT_EQ(site(*named, known_).function, "shapes::Box::innermost(int)");
  EXPECT_EQ(site(*named, known_).file, folder_.at("shapes.cc"));
  EXPECT_EQ(site(*named, known_).line, 4);
  EXPECT_EQ(named->site_place(named->site_of_stack(known_.value)), "shapes.cc:4");
  // Inlined calls are frames of their own: innermost() in middle() in outer(), called by step.
  EXPECT_EQ(named->describe_stack(known_.value, 64).size(), 4u);
  // Of what is not found all stays as it was.
  EXPECT_EQ(site(*named, unknown_).function, "step");
  EXPECT_EQ(named->describe_stack(unknown_.value, 1).at(0).function, "gone.so+0x40");
  // An inlined function is found like any other.
  const RowTable table{.input = named.get(), .pool = named->pools[0].get()};
  const auto middle =
      filters_from_json(table, R"([{"op":"stack_has","value":"shapes::middle"}])", {});
  ASSERT_TRUE(middle);
  EXPECT_TRUE(middle.value().at(0)(1));
  EXPECT_FALSE(middle.value().at(0)(2));
  // The one before is as it was, and the blocks are the same.
  EXPECT_EQ(site(*index_, known_).file, "/home/me/train.py");
  EXPECT_EQ(named->pools[0].get(), index_->pools[0].get());
  EXPECT_EQ(named->describe_stack(unknown_.value, 64).size(), 2u);
}

TEST_F(NameTableTest, ComesBackAsItWas) {
  NameMaker maker{SymbolOptions{}};
  const auto made = maker.make(*index_);
  const std::string path = folder_.at("names");
  EXPECT_EQ(load_names(path), nullptr);
  ASSERT_TRUE(save_names(*made, path));
  const auto names = load_names(path);
  ASSERT_NE(names, nullptr);
  EXPECT_FALSE(lacks_names(*index_, names.get()));
  const uint32_t object = names->object(library_, testing::build_id_of(library_));
  const auto frames = names->find(object, testing::mark(library_, "mark_in"));
  const auto before = made->find(object, testing::mark(library_, "mark_in"));
  ASSERT_EQ(frames.size(), before.size());
  for (size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(frames[i], before[i]);
  // That nothing is known of an address is known, too.
  EXPECT_TRUE(names->knows(names->object("/me/gone.so", "abcdef"), 0x40));
  EXPECT_FALSE(names->knows(names->object("/me/gone.so", "abcdef"), 0x41));
  EXPECT_EQ(names->object("/me/gone.so", "another build"), 0u);
}

TEST_F(NameTableTest, DamageIsFoundOut) {
  NameMaker maker{SymbolOptions{}};
  const std::string path = folder_.at("names");
  ASSERT_TRUE(save_names(*maker.make(*index_), path));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto write = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  };
  for (size_t size = 0; size < bytes.size(); ++size) {
    write(bytes.substr(0, size));
    ASSERT_EQ(load_names(path), nullptr) << size;
  }
  write(bytes + "x");
  EXPECT_EQ(load_names(path), nullptr);
  // Any byte another: an answer of some kind or none, never a crash.
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    write(damaged);
    const auto names = load_names(path);
    if (names != nullptr) index_->named(names)->describe_stack(known_.value, 64);
  }
}

TEST_F(NameTableTest, TheKeyTellsWhetherTheFilesAreStillTheSame) {
  const SymbolOptions options;
  const std::string key = names_key(*index_, options);
  EXPECT_EQ(names_key(*index_, options), key);
  EXPECT_NE(names_key(*index_, SymbolOptions{.debug_paths = {"/me/debug"}}), key);
  // The library was built anew, and is gone.
  std::filesystem::last_write_time(
      library_, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  const std::string later = names_key(*index_, options);
  EXPECT_NE(later, key);
  std::filesystem::remove(library_);
  EXPECT_NE(names_key(*index_, options), later);
  // No native frames: nothing to name.
  IndexScript python;
  python.alloc(0, 0xA0, 1, python.line(1));
  EXPECT_EQ(names_key(*python.build(), options), "");
}

}  // namespace
}  // namespace memscope::view
