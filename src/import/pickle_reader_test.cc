#include "import/pickle_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "import/test_pickles.h"

namespace memscope {
namespace {

// Hands nothing out; lists named "items" of the root dict are handed out where `streaming`.
class Sink : public ItemSink {
 public:
  bool streaming = false;
  std::vector<std::string> handed_out;  // the text under "name" of each item
  size_t alive = 0;                     // items that are kept at a time

  uint8_t child_role(uint8_t parent, std::string_view key, ValueKind) override {
    if (parent == kRootRole && key == "items") return kFirstOwnRole;
    if (parent == kRootRole && key == "lists") return kFirstOwnRole + 1;
    return parent == kFirstOwnRole + 1 ? kFirstOwnRole : kPlainRole;
  }
  bool streams(uint8_t role, ValueKind kind) const override {
    return streaming && role == kFirstOwnRole && kind == ValueKind::kList;
  }
  bool holds_lists(uint8_t role) const override { return role == kFirstOwnRole + 1; }
  bool item(Values& values, uint8_t, uint64_t, Value item) override {
    const auto items = values.items(item);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (values.text(items[i]) == "name") {
        handed_out.emplace_back(values.text(items[i + 1]));
      }
    }
    values.release(item);
    return true;
  }
};

struct Read {
  explicit Read(const std::string& bytes, bool streaming = false) : values(sink) {
    sink.streaming = streaming;
    ByteStream stream = ByteStream::of(bytes);
    auto read = read_pickle(stream, values);
    if (read) {
      root = read.value();
    } else {
      error = read.error().message;
    }
    left = stream.ready();
  }
  Sink sink;
  Values values;
  Value root;
  std::string error;
  size_t left = 0;  // bytes that were not looked at
};

std::string pickle(std::string_view body) {
  return Pickle().raw(body).end();
}

// -- values ---------------------------------------------------------------------------------------

TEST(PickleReader, NumbersOfEveryWidth) {
  const struct {
    std::string body;
    uint64_t bits;
    bool negative;
  } cases[] = {
      {std::string("K\xff"), 255, false},
      {std::string("M\xff\xff"), 65535, false},
      {std::string("J\xff\xff\xff\x7f"), 0x7fffffff, false},
      {std::string("J\xff\xff\xff\xff"), ~uint64_t{0}, true},  // -1
      {std::string("\x8a\x00", 2), 0, false},                  // LONG1 of no bytes is 0
      {std::string("\x8a\x01\x80"), static_cast<uint64_t>(-128), true},
      {std::string("\x8a\x08\x00\x00\x00\x00\xc0\x12\x00\x00", 10), 0x12c000000000, false},
      // An address from 2^63 on has a ninth byte, so that it is not negative.
      {std::string("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00", 11), uint64_t{1} << 63, false},
      {std::string("\x8b\x02\x00\x00\x00\x00\x01", 7), 256, false},  // LONG4
  };
  for (const auto& one : cases) {
    const Read read(pickle(one.body));
    EXPECT_EQ(read.error, "");
    EXPECT_EQ(read.root.kind, ValueKind::kNumber);
    EXPECT_EQ(read.root.bits, one.bits);
    EXPECT_EQ(read.root.negative, one.negative);
  }
}

TEST(PickleReader, ANumberThatIsNoAddressIsRefused) {
  EXPECT_EQ(Read(pickle(std::string("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01", 11))).error,
            "at byte 2: a number does not fit into 64 bits");
  EXPECT_EQ(Read(pickle(std::string("\x8a\xff", 2))).error,
            "at byte 2: a number of 255 bytes is announced, more than the 9 of an address");
  EXPECT_EQ(Read(pickle(std::string("\x8b\xff\xff\xff\x7f", 5))).error,
            "at byte 2: a number of 2147483647 bytes is announced, more than the 9 of an address");
}

TEST(PickleReader, EveryWriterGivesTheSameDict) {
  for (const PickleStyle style :
       {PickleStyle::kPython2, PickleStyle::kPython4, PickleStyle::kPython5, PickleStyle::kTorch}) {
    Pickle writer(style);
    writer.dict().mark().text("name").text("a").text("again").text("name").set_items();
    const Read read(writer.end());
    ASSERT_EQ(read.error, "");
    ASSERT_EQ(read.root.kind, ValueKind::kDict);
    const auto items = read.values.items(read.root);
    ASSERT_EQ(items.size(), 4u);
    EXPECT_EQ(read.values.text(items[1]), "a");
    EXPECT_EQ(read.values.text(items[3]), "name");
  }
}

TEST(PickleReader, APoolsIdIsAPairAndOtherTuplesAreObjects) {
  const Read two(Pickle().pair(3, 7).end());
  EXPECT_EQ(two.root.kind, ValueKind::kPair);
  EXPECT_EQ(two.root.bits, uint64_t{3} << 32 | 7);
  const Read three(pickle("K\x01K\x02K\x03\x87"));
  ASSERT_EQ(three.root.kind, ValueKind::kTuple);
  EXPECT_EQ(three.values.items(three.root).size(), 3u);
  const Read marked(pickle("(K\x01K\x02t"));
  EXPECT_EQ(marked.root.kind, ValueKind::kPair);
}

TEST(PickleReader, BytesArePassedOverAndTrailingOnesAreNotLookedAt) {
  const Read read(pickle(std::string("C\x03") + "abc") + std::string(100, '\0'));
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.root.kind, ValueKind::kNone);
  EXPECT_EQ(read.left, 100u);
}

// -- streaming ------------------------------------------------------------------------------------

// {'items': [{'name': 'a'}, {'name': 'b'}, {'name': 'c'}]}: handed out one by one, nothing of them
// kept.
TEST(PickleReader, ItemsAreHandedOutWhenTheNextOneBegins) {
  Pickle writer;
  writer.dict().mark().text("items").list().mark();
  for (const char* name : {"a", "b", "c"}) {
    writer.dict().mark().text("name").text(name).text("n").integer(1).set_items();
  }
  writer.appends().text("after").integer(1).set_items();
  const Read read(writer.end(), true);
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.sink.handed_out, (std::vector<std::string>{"a", "b", "c"}));
  const auto items = read.values.items(read.root);
  ASSERT_EQ(items.size(), 4u);
  EXPECT_TRUE(read.values.items(items[1]).empty());
}

// Python writes a list of one without MARK, a dict of one pair with SETITEM: [[{'name': 'a'}], []].
TEST(PickleReader, ListsAndDictsOfOneHaveNoMark) {
  Pickle writer;
  writer.dict().text("lists").list().mark();
  writer.list().dict().text("name").text("a").raw("s").raw("a");
  writer.list();
  writer.appends().raw("s");
  const Read read(writer.end(), true);
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.sink.handed_out, std::vector<std::string>{"a"});
}

// A list whose items come in several batches, as Python writes more than 1,000 of them.
TEST(PickleReader, BatchesOfAListFollowEachOther) {
  Pickle writer;
  writer.dict().text("items").list();
  for (int batch = 0; batch < 3; ++batch) {
    writer.mark();
    for (int i = 0; i < 2; ++i) {
      writer.dict().mark().text("name").text("x").text("n").integer(1).set_items();
    }
    writer.appends();
  }
  const Read read(writer.raw("s").end(), true);
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.sink.handed_out.size(), 6u);
}

// An item that is referred to after it was handed out has nothing in it any more.
TEST(PickleReader, WhatWasHandedOutIsGone) {
  Pickle writer;
  writer.dict().mark().text("items").list().mark();
  const uint32_t item = writer.next_memo();
  writer.dict().mark().text("name").text("a").text("n").integer(1).set_items();
  writer.appends().text("again").get(item).set_items();
  const Read read(writer.end(), true);
  ASSERT_EQ(read.error, "");
  EXPECT_FALSE(read.values.alive(read.values.items(read.root)[3]));
  EXPECT_TRUE(read.values.items(read.values.items(read.root)[3]).empty());
}

// -- hostile files --------------------------------------------------------------------------------

TEST(PickleReader, NothingThatRunsCodeIsReadPast) {
  const struct {
    const char* name;
    std::string body;
    int at;
  } cases[] = {
      {"GLOBAL", "cos\nsystem\n(S'true'\ntR", 2},
      {"STACK_GLOBAL",
       "\x8c\x08"
       "builtins\x8c\x04"
       "eval\x93",
       18},
      {"INST", "(S'true'\nios\nsystem\n", -1},
      {"OBJ", "(o", 3},
      {"NEWOBJ", "))\x81", 4},
      {"NEWOBJ_EX", ")))\x92", 5},
      {"REDUCE", "))R", 4},
      {"BUILD", "}}b", 4},
      {"PERSID", "Pid\n", 2},
      {"BINPERSID", "NQ", 3},
      {"EXT1", "\x82\x01", 2},
      {"EXT2", std::string("\x83\x01\x00", 3), 2},
      {"EXT4", std::string("\x84\x01\x00\x00\x00", 5), 2},
      {"NEXT_BUFFER", "\x97", 2},
      {"READONLY_BUFFER", "\x98", 2},
  };
  for (const auto& one : cases) {
    const Read read(pickle(one.body));
    if (one.at < 0) {  // S, a text of protocol 0, is refused before
      EXPECT_EQ(read.error, "at byte 3: opcode 0x53 is none that a snapshot has");
      continue;
    }
    EXPECT_EQ(read.error, "at byte " + std::to_string(one.at) +
                              ": it asks for Python code to be run (opcode " + one.name +
                              "), which no snapshot of memory does; nothing of it was run");
  }
}

TEST(PickleReader, NestingIsLimitedWhateverIsNested) {
  std::string lists;
  for (int i = 0; i < 100'000; ++i) lists += "](";
  EXPECT_EQ(Read(pickle(lists)).error, "at byte 131: it is nested more than 64 deep");
  // Without marks nothing is nested yet: it is put together afterwards, and no call is either.
  const std::string flat = std::string(100'000, ']') + std::string(99'999, 'a');
  EXPECT_EQ(Read(pickle(flat), true).error, "");
}

// Each list holds the one before it twice: 2^40 values, were they ever written out.
TEST(PickleReader, AMemoBombStaysAsSmallAsItsFile) {
  Pickle writer;
  writer.list();
  for (int i = 0; i < 40; ++i) {
    writer.list().mark().get(writer.next_memo() - 2).get(writer.next_memo() - 2).appends();
  }
  for (int i = 0; i < 40; ++i) writer.raw("\x86");
  const Read read(writer.end());
  EXPECT_EQ(read.error, "");
}

// l = []; l.append(l)
TEST(PickleReader, AListThatContainsItselfIsFine) {
  const Read read(
      pickle("]\x94h"
             "\x01"
             "a"));
  EXPECT_NE(read.error, "");  // there is no value 1
  const Read self(
      pickle(std::string("]\x94h\x00"
                         "a",
                         5)));
  EXPECT_EQ(self.error, "");
  EXPECT_EQ(self.values.items(self.root).size(), 1u);
  EXPECT_EQ(self.values.items(self.root)[0].bits, self.root.bits);
}

TEST(PickleReader, ADictIsMadeOfTextsAndTheirValues) {
  EXPECT_EQ(Read(pickle("}(K\x01K\x02K\x03u")).error,
            "at byte 10: a dict has a key without a value");
  EXPECT_EQ(Read(pickle("}(K\x01K\x02u")).error, "at byte 8: a dict has a key that is no text");
  EXPECT_EQ(Read(pickle("}K\x01K\x02s")).error, "at byte 7: a dict has a key that is no text");
  EXPECT_EQ(Read(pickle("](K\x01K\x02u")).error, "at byte 8: it sets keys of what is no dict");
  EXPECT_EQ(Read(pickle("}(K\x01"
                        "e"))
                .error,
            "at byte 6: it adds to what is no list");
}

TEST(PickleReader, WhatIsMissingOnTheStackIsSaid) {
  EXPECT_EQ(Read(pickle("e")).error, "at byte 2: it ends a list that it did not begin");
  EXPECT_EQ(Read(pickle("u")).error, "at byte 2: it ends a dict that it did not begin");
  EXPECT_EQ(Read(pickle("t")).error, "at byte 2: it ends a list that it did not begin");
  EXPECT_EQ(Read(pickle("a")).error, "at byte 2: it adds to a list where none is");
  EXPECT_EQ(Read(pickle("s")).error, "at byte 2: it sets a key where no dict is");
  EXPECT_EQ(Read(pickle("\x94")).error, "at byte 2: it remembers a value where none is");
  EXPECT_EQ(Read(pickle("\x87")).error, "at byte 2: a tuple has fewer values than it says");
  EXPECT_EQ(Read(pickle("h\x07")).error, "at byte 2: it refers to value 7, which there is not");
  EXPECT_EQ(Read(pickle("NN")).error, "at byte 4: it ends with 2 values instead of one");
  EXPECT_EQ(Read(pickle("0")).error, "at byte 2: it takes a value from where none is");
  // A mark keeps what is below it from being taken.
  EXPECT_EQ(Read(pickle("N(0")).error, "at byte 4: it takes a value from where none is");
}

TEST(PickleReader, LengthsAreBelievedOnlyAsFarAsThereAreBytes) {
  EXPECT_EQ(Read(pickle("X\xff\xff\xff\xff")).error,
            "at byte 2: a text of 4294967295 bytes is announced, more than 1048576");
  EXPECT_EQ(Read(pickle("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f")).error,
            "at byte 2: a text of 9223372036854775807 bytes is announced, more than 1048576");
  EXPECT_EQ(Read(pickle(std::string("X\x10\x00\x00\x00", 5) + "short")).error,
            "at byte 2: the pickle is cut off: it does not come to its end (STOP)");
  EXPECT_EQ(Read(pickle("\x8e\xff\xff\xff\xff\xff\xff\xff\x7fxx")).error,
            "at byte 2: the pickle is cut off: it does not come to its end (STOP)");
  // A frame is a hint; that it is cut off shows where the bytes end.
  EXPECT_EQ(Read(std::string("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f]", 12)).error,
            "at byte 12: the pickle is cut off: it does not come to its end (STOP)");
  // LONG_BINPUT of value 2^31: nothing is made room for.
  EXPECT_EQ(Read(pickle(std::string("Nr\x00\x00\x00\x80", 6))).error,
            "at byte 3: it remembers a value under the number 2147483648 after 0 others");
}

TEST(PickleReader, EveryCutOffFileIsAnError) {
  Pickle writer;
  writer.dict().mark().text("items").list().mark();
  writer.dict().mark().text("name").text("a").text("n").integer(300).set_items();
  writer.appends().set_items();
  const std::string whole = writer.end();
  ASSERT_EQ(Read(whole, true).error, "");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(Read(whole.substr(0, size), true).error, "") << size;
  }
}

TEST(PickleReader, AnUnknownProtocolOrOpcodeIsNamed) {
  EXPECT_EQ(Read(std::string("\x80\x06N.")).error, "at byte 0: pickle protocol 6 is not known");
  EXPECT_EQ(Read(pickle("\xff")).error, "at byte 2: opcode 0xff is none that a snapshot has");
}

}  // namespace
}  // namespace memscope
