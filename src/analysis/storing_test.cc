#include "analysis/storing.h"

#include <gtest/gtest.h>

#include "analysis/python_text.h"

namespace memscope {
namespace {

using Kind = PythonStatement::Kind;

// A file and a stack of frames in it, outermost first: (function, first line, line).
struct Source {
  struct At {
    const char* function;
    uint32_t first_line, line;
  };
  Source(const char* text, std::vector<At> frames) {
    sources["/me/train.py"] = {text, 0};
    for (const At& at : frames) {
      stack = stacks.intern(stack, stacks.intern_frame({.file = strings.intern("/me/train.py"),
                                                        .function = strings.intern(at.function),
                                                        .line = at.line,
                                                        .first_line = at.first_line}));
    }
  }
  // "line container", "" none.
  std::string found() {
    Sites sites(stacks, strings, sources);
    const auto stored = stored_at(sites, stack);
    if (!stored) return "";
    EXPECT_TRUE(stored->at.inferred);
    return std::to_string(*stored->at.line) + " " + stored->container;
  }
  StackTable stacks;
  StringTable strings;
  Sites::Sources sources;
  StackId stack;
};

TEST(StoredAt, TheOneStatementThatStoresTheName) {
  Source source(
      "def main():\n"                    // 1
      "    history = []\n"               // 2
      "    for x in data:\n"             // 3
      "        y = model(x).detach()\n"  // 4
      "        y.sum()\n"                // 5
      "        history.append(y)\n",     // 6
      {{"main", 1, 4}});
  EXPECT_EQ(source.found(), "6 history");
}

TEST(StoredAt, InsideTheStoringStatement) {
  Source source("def main():\n    seen.append(torch.zeros(8))\n", {{"main", 1, 2}});
  EXPECT_EQ(source.found(), "2 seen");
}

TEST(StoredAt, ANumberIsNoTensor) {
  Source source("def main():\n    seen.append(loss.mean().item())\n", {{"main", 1, 2}});
  EXPECT_EQ(source.found(), "");
  Source named("def main():\n    loss = f(x)\n    seen.append(loss.item())\n", {{"main", 1, 2}});
  EXPECT_EQ(named.found(), "");
}

TEST(StoredAt, OfATupleAndOfAnAttribute) {
  Source source(
      "class Buffer:\n"                                      // 1
      "    def push(self, state):\n"                         // 2
      "        kept = state.clone()\n"                       // 3
      "        self.memory.append((kept.detach(), 1.0))\n",  // 4
      {{"Buffer.push", 2, 3}});
  EXPECT_EQ(source.found(), "4 self.memory");
}

TEST(StoredAt, ADictOfTheFileButNoTensor) {
  Source dict("cache = {}\ndef f(k):\n    y = g(k)\n    cache[k] = y\n", {{"f", 2, 3}});
  EXPECT_EQ(dict.found(), "4 cache");
  // Into a tensor it is copied: this is not what keeps it.
  Source tensor("out = torch.zeros(9)\ndef f(k):\n    y = g(k)\n    out[k] = y\n", {{"f", 2, 3}});
  EXPECT_EQ(tensor.found(), "");
}

TEST(StoredAt, ReturnedIntoTheCallersStatement) {
  Source source(
      "def make():\n"                // 1
      "    x = torch.zeros(8)\n"     // 2
      "    return x\n"               // 3
      "def main():\n"                // 4
      "    tensor = make()\n"        // 5
      "    store.append(tensor)\n",  // 6
      {{"main", 4, 5}, {"make", 1, 2}});
  EXPECT_EQ(source.found(), "6 store");
  Source direct("def make():\n    return torch.zeros(8)\nstore = []\nstore.append(make())\n",
                {{"<module>", 1, 4}, {"make", 1, 2}});
  EXPECT_EQ(direct.found(), "4 store");
  Source other("def make():\n    return torch.zeros(8)\nstore.append(mean(make()))\n",
               {{"<module>", 1, 3}, {"make", 1, 2}});
  EXPECT_EQ(other.found(), "") << "the result of mean() is stored";
}

TEST(StoredAt, TwoThatStoreAndOneThatTakesOutAreNotTold) {
  Source two("def f():\n    x = g()\n    a.append(x)\n    b.append(x)\n", {{"f", 1, 2}});
  EXPECT_EQ(two.found(), "");
  Source taken("def f():\n    x = g()\n    a.append(x)\n    if len(a) > 9: a.pop(0)\n",
               {{"f", 1, 2}});
  EXPECT_EQ(taken.found(), "");
  Source deleted("def f():\n    x = g()\n    a.append(x)\n    del a[:-9]\n", {{"f", 1, 2}});
  EXPECT_EQ(deleted.found(), "");
}

TEST(StoredAt, AnotherFunctionsNameIsAnother) {
  Source source("def f():\n    x = g()\n    h(x)\ndef other():\n    a.append(x)\n", {{"f", 1, 2}});
  EXPECT_EQ(source.found(), "");
}

TEST(StoredAt, TheUsersOwnAppendIsNotTheLists) {
  Source source(
      "class Log:\n    def append(self, x):\n        pass\ndef f():\n    log.append(g())\n",
      {{"f", 4, 5}});
  EXPECT_EQ(source.found(), "");
}

TEST(StoredAt, WithoutSourceOrFunctionNothing) {
  Source empty("", {{"f", 1, 2}});
  EXPECT_EQ(empty.found(), "");
  Source beyond("def f():\n    pass\n", {{"f", 1, 20}});
  EXPECT_EQ(beyond.found(), "");
  Source newer("def f():\n    a.append(g())\n", {{"f", 1, 2}});
  newer.sources["/me/train.py"].flags = SourceText::kNewer;
  EXPECT_EQ(newer.found(), "") << "its lines may be others by now";
}

TEST(ParseStatement, Kinds) {
  EXPECT_EQ(parse_statement("x = f(a=1)").kind, Kind::kAssign);
  EXPECT_EQ(parse_statement("x: Tensor = f(a=1)").target, "x");
  EXPECT_EQ(parse_statement("x == y").kind, Kind::kOther);
  EXPECT_EQ(parse_statement("x += y").kind, Kind::kOther);
  EXPECT_EQ(parse_statement("x = y = f()").kind, Kind::kOther);
  EXPECT_EQ(parse_statement("a, b = f()").kind, Kind::kOther);
  EXPECT_EQ(parse_statement("self.x = f()").kind, Kind::kOther) << "keeps the newest only";
  EXPECT_EQ(parse_statement("d['a = b'] = y").target, "d");
  EXPECT_EQ(parse_statement("a[i].append(x)").target, "a[i]");
  EXPECT_EQ(parse_statement("f(x).append(y)").kind, Kind::kOther);
  EXPECT_EQ(parse_statement("print(x)").kind, Kind::kOther);
  EXPECT_EQ(parse_statement("return x, y").value, "x, y");
  EXPECT_EQ(parse_statement("x = cut...").kind, Kind::kOther);
  for (const char* odd :
       {"", "(", ")", "]=", "=", "'", "\"\"\"", "\\", "a[", "x = '\\", "return "}) {
    parse_statement(odd);
    stored_elements(odd);
    called(odd);
  }
}

TEST(StoredElements, AsTheyAre) {
  EXPECT_EQ(stored_elements("(a, b.detach(), f(c))"), (std::vector<std::string>{"a", "b", "f(c)"}));
  EXPECT_EQ(stored_elements("{'x': a, \"y\": [b]}"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(stored_elements("lambda: x"), (std::vector<std::string>{"x"}));
  EXPECT_EQ(stored_elements("x * 2"), (std::vector<std::string>{"x * 2"}));
}

}  // namespace
}  // namespace memscope
