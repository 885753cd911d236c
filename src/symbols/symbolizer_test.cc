#include "symbols/symbolizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "symbols/look_up_fixture.h"

namespace memscope {
namespace {

using testing::bytes_of;
using testing::compile_shapes;
using ::testing::ElementsAre;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::mark;
using testing::write_bytes;

struct Text {
  std::string function, file;
  uint32_t line = 0;
  bool inlined = false;
  friend bool operator==(const Text&, const Text&) = default;
  friend void PrintTo(const Text& text, std::ostream* out) {
    *out << text.function << " " << text.file << ":" << text.line
         << (text.inlined ? " inlined" : "");
  }
};

std::vector<Text> frames(const Symbolizer& symbolizer, NativeAddress address) {
  std::vector<Text> texts;
  for (const SourceFrame& frame : symbolizer.find(address)) {
    texts.push_back(
        {std::string(frame.function), std::string(frame.file), frame.line, frame.inlined});
  }
  return texts;
}

std::vector<Text> look(Symbolizer& symbolizer, const ObjectFile& file, uint64_t offset) {
  const NativeAddress address{symbolizer.object(file), offset};
  symbolizer.resolve({&address, 1});
  return frames(symbolizer, address);
}

// The worked-out answers of kShapes for every way its source can be compiled.
void expect_shapes(const ObjectFile& file, const std::string& marks, const std::string& source,
                   const SymbolOptions& options = {}) {
  Symbolizer symbolizer(options);
  // Line 4, in innermost() called on line 9, in middle() called on line 14, in outer().
  EXPECT_THAT(look(symbolizer, file, mark(marks, "mark_in")),
              ElementsAre(Text{"shapes::Box::innermost(int)", source, 4, true},
                          Text{"shapes::middle(shapes::Box&, int)", source, 9, true},
                          Text{"shapes::outer(int)", source, 14, false}));
  EXPECT_THAT(look(symbolizer, file, mark(marks, "mark_out")),
              ElementsAre(Text{"shapes::outer(int)", source, 13, false}));
  const auto lambda = look(symbolizer, file, mark(marks, "mark_lambda"));
  ASSERT_EQ(lambda.size(), 1u);
  EXPECT_THAT(lambda[0].function, HasSubstr("plain"));
  EXPECT_EQ(lambda[0].line, 23u);
  // A local class: described within the function it stands in, once it was inlined too.
  const auto deep = look(symbolizer, file, mark(marks, "mark_add"));
  ASSERT_EQ(deep.size(), 2u);
  EXPECT_EQ(deep[0], (Text{"add(int)", source, 29, true}));
  EXPECT_THAT(deep[1].function, HasSubstr("local"));
  EXPECT_EQ(deep[1].line, 34u);
  const auto hidden = look(symbolizer, file, mark(marks, "mark_hidden"));
  ASSERT_EQ(hidden.size(), 1u);
  EXPECT_THAT(hidden[0].function, ::testing::StartsWith("hidden(int)"));
  EXPECT_EQ(hidden[0].line, 18u);
  EXPECT_THAT(symbolizer.notes(), IsEmpty());
}

TEST(Symbolizer, NamesFunctionsLinesAndInlinedCalls) {
  const Folder folder;
  const std::string library = compile_shapes(folder);
  expect_shapes({library, testing::build_id_of(library)}, library, folder.at("shapes.cc"));
}

TEST(Symbolizer, NamesCallsInlinedInNestedFunctions) {
  // GNU C: a function described within the one it stands in, as gcc does with local classes too.
  const Folder folder;
  const std::string source = folder.at("nested.c"), library = folder.at("libnested.so");
  write_bytes(source, R"(__attribute__((always_inline)) static inline int add(int x) {
  __asm__ volatile(".globl mark_add\nmark_add: nop");  // line 2
  return x + 1;
}
int outer(int x) {
  __attribute__((noinline)) int within(int y) { return add(y) * x; }  // line 6
  return within(x) + within(3);
}
)");
  testing::run("gcc -O2 -g -fPIC -shared -Wl,--build-id=sha1 -o " + library + " " + source);
  Symbolizer symbolizer({});
  const auto found =
      look(symbolizer, {library, testing::build_id_of(library)}, mark(library, "mark_add"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (Text{"add", source, 2, true}));
  EXPECT_THAT(found[1].function, ::testing::StartsWith("within"));
  EXPECT_EQ(found[1].file, source);
  EXPECT_EQ(found[1].line, 6u);
}

TEST(Symbolizer, ReadsWhatCompilersWrite) {
  for (const char* flags : {"-gdwarf-4", "-gdwarf-5 -gz=zlib", "-gdwarf-5 -fdebug-types-section",
                            "-gdwarf-3 -gstrict-dwarf", "-fno-dwarf2-cfi-asm", "-flto"}) {
    SCOPED_TRACE(flags);
    const Folder folder;
    const std::string library = compile_shapes(folder, flags);
    expect_shapes({library, testing::build_id_of(library)}, library, folder.at("shapes.cc"));
  }
}

TEST(Symbolizer, ReadsDebugFileByBuildId) {
  const Folder folder, debug;
  const std::string library = compile_shapes(folder);
  const std::string id = testing::build_id_of(library);
  testing::split_debug(library, debug.at(testing::build_id_path(id) + ".debug"));
  expect_shapes({library, id}, library, folder.at("shapes.cc"), {.debug_paths = {debug.at("")}});
}

TEST(Symbolizer, ReadsDebugFileByLink) {
  const Folder folder;
  const std::string library = compile_shapes(folder), debug = folder.at(".debug/shapes.debug");
  testing::split_debug(library, debug);
  testing::run("objcopy --add-gnu-debuglink=" + debug + " " + library);
  expect_shapes({library, testing::build_id_of(library)}, library, folder.at("shapes.cc"));
}

TEST(Symbolizer, ReadsDebugFileAlone) {
  // On another machine: the object is not there, its debug file is.
  const Folder folder, debug;
  const std::string library = compile_shapes(folder);
  const std::string id = testing::build_id_of(library);
  testing::run("objcopy --only-keep-debug " + library + " " +
               debug.at(testing::build_id_path(id) + ".debug"));
  expect_shapes({"/nowhere/libshapes.so", id}, library, folder.at("shapes.cc"),
                {.debug_paths = {debug.at("")}});
}

TEST(Symbolizer, WithoutDebugDataNamesSymbols) {
  const Folder folder;
  const std::string library = compile_shapes(folder, "-g0");
  const ObjectFile file{library, testing::build_id_of(library)};
  const uint64_t in = mark(library, "mark_in"), hidden = mark(library, "mark_hidden");
  {
    Symbolizer symbolizer({});
    EXPECT_THAT(look(symbolizer, file, in), ElementsAre(Text{"shapes::outer(int)"}));
    EXPECT_THAT(look(symbolizer, file, hidden), ElementsAre(Text{"hidden(int)"}));  // .symtab
  }
  testing::run("strip " + library);
  Symbolizer symbolizer({});
  EXPECT_THAT(look(symbolizer, file, in), ElementsAre(Text{"shapes::outer(int)"}));  // .dynsym
  EXPECT_THAT(look(symbolizer, file, hidden), IsEmpty());  // a static function is not in it
  EXPECT_THAT(look(symbolizer, file, 1), IsEmpty());       // headers are no function
  EXPECT_THAT(look(symbolizer, file, ~uint64_t{0}), IsEmpty());
}

TEST(Symbolizer, RefusesAnotherBuild) {
  const Folder folder;
  const std::string library = compile_shapes(folder);
  Symbolizer symbolizer({});
  const ObjectFile file{library, "0123456789abcdef0123456789abcdef01234567"};
  EXPECT_THAT(look(symbolizer, file, mark(library, "mark_in")), IsEmpty());
  EXPECT_THAT(symbolizer.notes(),
              ElementsAre(library + ": not the build that was traced, so not used; shown as "
                                    "object+0xoffset. Give the right one with --sysroot or "
                                    "--debug-path"));
}

TEST(Symbolizer, SaysWhatIsNotThere) {
  Symbolizer symbolizer({});
  EXPECT_THAT(look(symbolizer, {"/nowhere/a.so", "abcd"}, 16), IsEmpty());
  EXPECT_THAT(look(symbolizer, {"/nowhere/b.so", "abce"}, 16), IsEmpty());
  EXPECT_THAT(symbolizer.notes(),
              ElementsAre("/nowhere/a.so and 1 other object: not on this machine; shown as "
                          "object+0xoffset. Give it with --sysroot or --debug-path"));
}

TEST(Symbolizer, LooksUpAnAddressOnce) {
  // 100,000 times four addresses. Once they are known the file is not read again: it is gone.
  const Folder folder;
  const std::string library = compile_shapes(folder);
  Symbolizer symbolizer({});
  const uint32_t object = symbolizer.object({library, testing::build_id_of(library)});
  EXPECT_EQ(symbolizer.object({library, testing::build_id_of(library)}), object);
  std::vector<NativeAddress> addresses;
  for (int i = 0; i < 25'000; ++i) {
    for (const uint64_t offset : {1, 2, 3, 4}) addresses.push_back({object, offset});
  }
  const char* const names[] = {"mark_in", "mark_out", "mark_hidden", "mark_lambda"};
  uint64_t offsets[4];
  for (int i = 0; i < 4; ++i) offsets[i] = mark(library, names[i]);
  for (NativeAddress& address : addresses) address.offset = offsets[address.offset - 1];
  symbolizer.resolve(addresses);
  std::filesystem::remove(library);
  symbolizer.resolve(addresses);
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto found = symbolizer.find(addresses[i]);
    ASSERT_FALSE(found.empty());
    ASSERT_EQ(found.data(), symbolizer.find(addresses[i % 4]).data());  // not one more copy
  }
  EXPECT_THAT(symbolizer.notes(), IsEmpty());
}

TEST(Symbolizer, SharesAnObjectAmongWorkers) {
  // 100,000 different addresses of one object: several jobs, whose answers come together.
  const Folder folder;
  const std::string library = compile_shapes(folder);
  Symbolizer symbolizer({.workers = 4});
  const uint32_t object = symbolizer.object({library, testing::build_id_of(library)});
  std::vector<NativeAddress> addresses;
  for (uint64_t offset = 1; offset <= 100'000; ++offset) addresses.push_back({object, offset});
  symbolizer.resolve(addresses);
  EXPECT_EQ(frames(symbolizer, {object, mark(library, "mark_in")}).size(), 3u);
  EXPECT_EQ(frames(symbolizer, {object, mark(library, "mark_hidden")}).size(), 1u);
  EXPECT_THAT(symbolizer.notes(), IsEmpty());
}

TEST(Symbolizer, EndsWithItsBudget) {
  const Folder folder;
  const std::string library = compile_shapes(folder);
  Symbolizer symbolizer({.budget = std::chrono::milliseconds(0)});
  EXPECT_THAT(look(symbolizer, {library, testing::build_id_of(library)}, 16), IsEmpty());
  EXPECT_THAT(symbolizer.notes(),
              ElementsAre("1 address not looked up within 0 s; shown as object+0xoffset"));
}

TEST(Symbolizer, AsksNothingOfWhatIsNoFile) {
  Symbolizer symbolizer({});
  for (const char* path : {"", "[vdso]", "memfd:code", "relative.so"}) {
    EXPECT_THAT(look(symbolizer, {path, "abcd"}, 16), IsEmpty());
  }
  EXPECT_THAT(look(symbolizer, {"/dev/zero", "abcd"}, 16), IsEmpty());
  EXPECT_THAT(symbolizer.notes(), ElementsAre(HasSubstr("/dev/zero: not on this machine")));
}

TEST(Symbolizer, SurvivesTruncatedFiles) {
  const Folder folder;
  const std::string library = compile_shapes(folder), whole = bytes_of(library);
  const std::string id = testing::build_id_of(library);
  const uint64_t in = mark(library, "mark_in");
  size_t unread = 0;
  for (size_t part = 0; part < 64; ++part) {
    const std::string piece = folder.at("piece.so");
    write_bytes(piece, whole.substr(0, whole.size() * part / 64));
    Symbolizer symbolizer({});
    if (look(symbolizer, {piece, id}, in).empty()) ++unread;
  }
  EXPECT_GT(unread, 0u);
  // No byte of it there, or not even its header: said to be damaged.
  write_bytes(folder.at("piece.so"), whole.substr(0, 40));
  Symbolizer symbolizer({});
  EXPECT_THAT(look(symbolizer, {folder.at("piece.so"), id}, in), IsEmpty());
  EXPECT_THAT(symbolizer.notes(), ElementsAre(HasSubstr("piece.so: damaged")));
}

TEST(Symbolizer, SurvivesGarbledFiles) {
  const Folder folder;
  const std::string library = compile_shapes(folder), whole = bytes_of(library);
  const std::string id = testing::build_id_of(library), piece = folder.at("piece.so");
  const uint64_t in = mark(library, "mark_in");
  std::mt19937_64 random(7);
  for (int round = 0; round < 100; ++round) {
    std::string bytes = whole;
    // After the first page, so that the build-id is still the right one: .debug_* and tables.
    for (int i = 0; i < 200; ++i) {
      bytes[4096 + random() % (bytes.size() - 4096)] = static_cast<char>(random());
    }
    write_bytes(piece, bytes);
    Symbolizer symbolizer({.budget = std::chrono::milliseconds(500)});
    std::vector<NativeAddress> addresses;
    const uint32_t object = symbolizer.object({piece, id});
    for (uint64_t offset = in - 64; offset < in + 64; ++offset) {
      addresses.push_back({object, offset});
    }
    symbolizer.resolve(addresses);
    for (const NativeAddress& address : addresses) {
      for (const SourceFrame& frame : symbolizer.find(address)) {
        ASSERT_LE(frame.function.size(), 8192u);
        ASSERT_LE(frame.file.size(), 8192u);
      }
    }
  }
  // Another library's answers are not touched by a damaged one's.
  Symbolizer symbolizer({});
  const std::vector<NativeAddress> both{{symbolizer.object({piece, id}), in},
                                        {symbolizer.object({library, id}), in}};
  symbolizer.resolve(both);
  EXPECT_EQ(frames(symbolizer, both[1]).size(), 3u);
}

}  // namespace
}  // namespace memscope
