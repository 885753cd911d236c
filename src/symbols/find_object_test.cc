#include "symbols/find_object.h"

#include <gtest/gtest.h>

#include "symbols/look_up_fixture.h"

namespace memscope {
namespace {

using testing::build_id_of;
using testing::build_id_path;
using testing::compile_shapes;
using testing::Folder;

TEST(FindObject, UnderTheSysrootBeforeThisMachine) {
  const Folder folder, root;
  const std::string library = compile_shapes(folder), id = build_id_of(library);
  EXPECT_EQ(find_object({library, id}, {}).main_path, library);
  const std::string below = root.at("." + library);
  std::filesystem::copy_file(library, below);
  const std::string sysroot = std::filesystem::path(root.at("x")).parent_path().string();
  EXPECT_EQ(find_object({library, id}, {.sysroot = sysroot}).main_path, sysroot + library);
  // One of another build there: this machine's is taken, by its build-id.
  compile_shapes(root, "-DOTHER -O1");
  std::filesystem::copy_file(root.at("libshapes.so"), sysroot + library,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(find_object({library, id}, {.sysroot = sysroot}).main_path, library);
}

TEST(FindObject, InDebugPaths) {
  const Folder folder, debug;
  const std::string library = compile_shapes(folder), id = build_id_of(library);
  const std::string root = std::filesystem::path(debug.at("x")).parent_path().string();
  for (const std::string& place :
       {std::string("libshapes.so"), std::string("away/libshapes.so"), build_id_path(id)}) {
    std::filesystem::copy_file(library, debug.at(place));
    const FoundObject found = find_object({"/away/libshapes.so", id}, {.debug_paths = {root}});
    EXPECT_EQ(found.status, LookUpStatus::kFound) << place;
    EXPECT_EQ(found.main_path, debug.at(place));
    std::filesystem::remove(debug.at(place));
  }
  EXPECT_EQ(find_object({"/away/libshapes.so", id}, {.debug_paths = {root}}).status,
            LookUpStatus::kMissing);
}

TEST(FindObject, RefusesADebugFileOfAnotherBuild) {
  const Folder folder, other;
  const std::string library = compile_shapes(folder), id = build_id_of(library);
  const std::string debug = folder.at("shapes.debug");
  testing::split_debug(library, debug);
  testing::run("objcopy --add-gnu-debuglink=" + debug + " " + library);
  EXPECT_EQ(find_object({library, id}, {}).debug_path, debug);
  testing::split_debug(compile_shapes(other, "-O1"), debug);
  const FoundObject found = find_object({library, id}, {});
  EXPECT_EQ(found.status, LookUpStatus::kFound);  // with its symbols alone
  EXPECT_EQ(found.main_path, library);
  EXPECT_FALSE(found.debug);
}

TEST(FindObject, WithoutBuildIdTheTimeOfChangeDecides) {
  const Folder folder;
  const std::string library = compile_shapes(folder, "-Wl,--build-id=none");
  EXPECT_EQ(build_id_of(library), "");
  const uint64_t time = modified_ns(open_regular(library).get());
  ASSERT_NE(time, 0u);
  EXPECT_EQ(find_object({library, "", time}, {}).status, LookUpStatus::kFound);
  EXPECT_EQ(find_object({library, "", time + 1}, {}).status, LookUpStatus::kMismatch);
  const FoundObject found = find_object({library, "", 0}, {});
  EXPECT_EQ(found.status, LookUpStatus::kUnknowable);
  EXPECT_EQ(found.detail, library);
}

TEST(FindObject, WithoutBuildIdTheLinksChecksumDecides) {
  const Folder folder;
  const std::string library = compile_shapes(folder, "-Wl,--build-id=none");
  const std::string debug = folder.at("shapes.debug");
  testing::split_debug(library, debug);
  testing::run("objcopy --add-gnu-debuglink=" + debug + " " + library);
  const ObjectFile file{library, "", modified_ns(open_regular(library).get())};
  EXPECT_EQ(find_object(file, {}).debug_path, debug);
  std::string bytes = testing::bytes_of(debug);
  bytes.back() ^= 1;
  testing::write_bytes(debug, bytes);
  EXPECT_EQ(find_object(file, {}).debug_path, "");
}

TEST(FindObject, WhatIsNoElfFileIsDamagedAndNoDeviceOpened) {
  const Folder folder;
  testing::write_bytes(folder.at("a.so"), "text");
  EXPECT_EQ(find_object({folder.at("a.so"), "abcd"}, {}).status, LookUpStatus::kDamaged);
  EXPECT_EQ(find_object({folder.at("none.so"), "abcd"}, {}).status, LookUpStatus::kMissing);
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(open_regular(folder.at("pipe")));  // and does not wait for a writer
  EXPECT_FALSE(open_regular("/dev/zero"));
  EXPECT_FALSE(open_regular(folder.at("")));
}

}  // namespace
}  // namespace memscope
