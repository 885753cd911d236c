#include "analysis/native_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/site.h"
#include "symbols/look_up_fixture.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Stacks in a small library of the user's (symbols/look_up_fixture.h), which Python calls.
class NativeNamesTest : public ::testing::Test {
 protected:
  FrameId python(const char* file, const char* function, uint32_t line) {
    return stacks_.intern_frame({.file = strings_.intern(file),
                                 .function = strings_.intern(function),
                                 .line = line,
                                 .end_line = line});
  }
  FrameId native(const std::string& object, uint64_t offset, const std::string& build_id) {
    return stacks_.intern_frame({.file = strings_.intern(object),
                                 .module = strings_.intern(build_id),
                                 .kind = FrameKind::kNative,
                                 .offset = offset});
  }
  FrameId at(const char* label) {
    return native(library_, testing::mark(library_, label), testing::build_id_of(library_));
  }
  // Outermost first.
  StackId stack(std::initializer_list<FrameId> frames) {
    StackId id;
    for (const FrameId frame : frames) id = stacks_.intern(id, frame);
    return id;
  }
  // Their names, asked for as a diagnosis does; `bytes` of the n-th are n.
  void name(std::initializer_list<StackId> stacks) {
    names_ = std::vector<NativeNames>{{symbolizer_, stacks_, strings_, side_}};
    std::vector<StackToName> wanted;
    for (const StackId one : stacks) wanted.push_back({0, one, wanted.size()});
    name_stacks(symbolizer_, names_, wanted);
  }
  SiteFrame site(StackId stack) {
    const uint32_t number = sites().site_of(stack);
    return number == 0 ? SiteFrame{} : sites().frame(number);
  }
  Sites& sites() {
    if (!sites_) sites_.emplace(stacks_, strings_, side_.sources, &names_.at(0));
    return *sites_;
  }
  static std::vector<std::string> places(const std::vector<SiteFrame>& frames) {
    std::vector<std::string> texts;
    for (const SiteFrame& frame : frames) {
      const std::string file = frame.file.value_or("?");
      texts.push_back(file.substr(file.rfind('/') + 1) + ":" +
                      std::to_string(frame.line.value_or(0)) + " " + frame.function);
    }
    return texts;
  }

  testing::Folder folder_;
  std::string library_ = testing::compile_shapes(folder_);
  StackTable stacks_;
  StringTable strings_;
  SideRecords side_;
  Symbolizer symbolizer_{SymbolOptions{}};
  std::vector<NativeNames> names_;
  std::optional<Sites> sites_;
};

const char* const kLibc = "/usr/lib/x86_64-linux-gnu/libc.so.6";

TEST_F(NativeNamesTest, TheInnermostUserLineIsTheSiteWhicheverLanguageItIsIn) {
  // Python calls the library, which calls malloc: the library's line. Another is called back into
  // Python: Python's.
  const FrameId train = python("/me/train.py", "<module>", 5);
  const FrameId line = python("/me/train.py", "step", 9), in = at("mark_in");
  const FrameId malloc = native(kLibc, 0x1234, "00");
  const StackId called = stack({train, line, in, malloc});
  const StackId back = stack({train, in, line, malloc});
  name({called, back});
  const SiteFrame frame = site(called);
  EXPECT_EQ(frame.file, folder_.at("shapes.cc"));
  EXPECT_EQ(frame.line, 4);
  EXPECT_EQ(frame.function, "shapes::Box::innermost(int)");
  EXPECT_EQ(frame.module, library_);
  EXPECT_TRUE(frame.native);
  EXPECT_TRUE(frame.user);
  EXPECT_EQ(site(back).function, "step");
  EXPECT_TRUE(sites().passes(called, sites().site_of(called)));
  EXPECT_TRUE(sites().passes(back, sites().site_of(called)));
  EXPECT_FALSE(sites().passes(stack({train, line}), sites().site_of(called)));
  EXPECT_THAT(sites().user_functions(called),
              ElementsAre(folder_.at("shapes.cc") + ":shapes::Box::innermost(int)",
                          "/me/train.py:step", "/me/train.py:<module>"));
}

TEST_F(NativeNamesTest, InlinedCallsAreFramesOfTheirOwn) {
  const StackId called = stack({python("/me/train.py", "step", 9), at("mark_in"), at("mark_out")});
  name({called});
  EXPECT_THAT(
      places(sites().describe_stack(called, 64)),
      ElementsAre("shapes.cc:13 shapes::outer(int)", "shapes.cc:4 shapes::Box::innermost(int)",
                  "shapes.cc:9 shapes::middle(shapes::Box&, int)",
                  "shapes.cc:14 shapes::outer(int)", "train.py:9 step"));
  EXPECT_EQ(sites().describe_stack(called, 3).size(), 3u);
}

TEST_F(NativeNamesTest, WhatALibrarysHeaderBecameIsNotTheUsersLine) {
  // A vector that grows in grow(): std::vector's functions lie in the user's object.
  testing::write_bytes(folder_.at("grow.cc"), R"(#include <vector>
#include <cstdlib>
extern "C" __attribute__((noinline)) void* mark_new(std::size_t n) {
  return std::malloc(n);
}
template <typename T> struct Marked {
  using value_type = T;
  Marked() = default;
  template <typename U> Marked(const Marked<U>&) {}
  T* allocate(std::size_t n) {
    asm volatile(".globl mark_allocate\nmark_allocate: nop");
    return static_cast<T*>(mark_new(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t) { std::free(p); }
};
)");
  // The header lies where headers are installed; what the user wrote calls it on line 3.
  const std::string header = folder_.at("include/c++/12/grow.h");
  std::filesystem::rename(folder_.at("grow.cc"), header);
  testing::write_bytes(folder_.at("user.cc"),
                       "#include \"include/c++/12/grow.h\"\n"
                       "extern \"C\" int* user(int n) {\n"
                       "  return Marked<int>().allocate(n);\n"
                       "}\n");
  const std::string object = folder_.at("libuser.so");
  testing::run("c++ -O2 -g -fPIC -shared -Wl,--build-id=sha1 -o " + object + " " +
               folder_.at("user.cc"));
  const StackId called =
      stack({python("/me/train.py", "step", 9),
             native(object, testing::mark(object, "mark_allocate"), testing::build_id_of(object))});
  name({called});
  EXPECT_THAT(places({site(called)}), ElementsAre("user.cc:3 user"));
}

TEST_F(NativeNamesTest, WithoutLinesPythonsLineThenTheUsersFunction) {
  testing::run("strip " + library_);  // its dynamic symbols are left
  const StackId called = stack({python("/me/train.py", "step", 9), at("mark_in")});
  const StackId alone = stack({native(kLibc, 0x99, "00"), at("mark_in")});
  name({called, alone});
  EXPECT_THAT(places({site(called)}), ElementsAre("train.py:9 step"));
  EXPECT_THAT(places({site(alone)}), ElementsAre("?:0 shapes::outer(int)"));
  EXPECT_TRUE(site(alone).user);
}

TEST_F(NativeNamesTest, WhatNothingIsKnownOfIsAnObjectAndAnOffset) {
  const StackId gone = stack({native("/me/gone.so", 0x1f30, "abcd"), native(kLibc, 0x99, "00")});
  name({gone});
  EXPECT_THAT(places({site(gone)}), ElementsAre("?:0 gone.so+0x1f30"));
  EXPECT_EQ(site(gone).module, "/me/gone.so");
  EXPECT_THAT(symbolizer_.notes(), ::testing::Contains(::testing::HasSubstr("/me/gone.so")));
}

TEST_F(NativeNamesTest, OfNobodysCodeTheFirstOutsideRunTimeAndAllocators) {
  const FrameId png = native("/usr/lib/x86_64-linux-gnu/libnowhere.so.16", 0x10, "01");
  const StackId stack_in_png =
      stack({native("/usr/bin/python3.11", 0x99, "02"), png, native(kLibc, 0x99, "00")});
  const StackId libc_alone = stack({native(kLibc, 0x99, "00")});
  name({stack_in_png, libc_alone});
  EXPECT_THAT(places({site(stack_in_png)}), ElementsAre("?:0 libnowhere.so.16+0x10"));
  EXPECT_FALSE(site(stack_in_png).user);
  EXPECT_EQ(sites().site_of(libc_alone), 0u);
}

TEST_F(NativeNamesTest, ObjectsWithoutABuildIdAreToldByTheirTimeOfChange) {
  const std::string plain = testing::compile_shapes(folder_, "-Wl,--build-id=none");
  const uint64_t offset = testing::mark(plain, "mark_out");
  const StackId called = stack({native(plain, offset, "")});
  side_.unnamed_modules[plain] = modified_ns(open_regular(plain).get());
  name({called});
  EXPECT_THAT(places({site(called)}), ElementsAre("shapes.cc:13 shapes::outer(int)"));
  // Of another time: not the file that was loaded.
  sites_.reset();
  Symbolizer another{SymbolOptions{}};
  side_.unnamed_modules[plain] -= 1;
  names_ = std::vector<NativeNames>{{another, stacks_, strings_, side_}};
  name_stacks(another, names_, {{0, called, 1}});
  EXPECT_THAT(places({site(called)}), ElementsAre(::testing::StartsWith("?:0 libshapes.so+0x")));
}

TEST_F(NativeNamesTest, NamesTheLargestOfManyStacks) {
  // One address too many, in the stack of the fewest bytes.
  const FrameId line = python("/me/train.py", "step", 9), out = at("mark_out");
  std::vector<StackToName> stacks;
  for (uint32_t i = 0; i <= kMaxNamedStacks; ++i) {
    const FrameId other = native(library_, 0x10000 + i, testing::build_id_of(library_));
    stacks.push_back({0, stack({line, i == 0 ? at("mark_hidden") : out, other}), i});
  }
  names_ = std::vector<NativeNames>{{symbolizer_, stacks_, strings_, side_}};
  name_stacks(symbolizer_, names_, stacks);
  EXPECT_FALSE(names_[0].find(stacks_.frame(out)).empty());
  EXPECT_THAT(names_[0].find(stacks_.frame(at("mark_hidden"))), IsEmpty());
}

}  // namespace
}  // namespace memscope
