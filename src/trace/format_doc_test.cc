#include "trace/format_doc.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "trace/test_directory.h"

namespace memscope {
namespace {

// This file lies in src/trace of the checkout; __FILE__ is absolute as the build calls the
// compiler.
std::filesystem::path document() {
  const std::filesystem::path here(__FILE__);
  return here.parent_path().parent_path().parent_path() / "docs" / "trace-format.md";
}

TEST(FormatDoc, TheDocumentHasTheTableOfTheCode) {
  const std::string text = read_bytes(document());
  ASSERT_FALSE(text.empty()) << document();
  const std::string begin = std::string(kFormatDocBegin) + "\n\n";
  const size_t from = text.find(begin);
  const size_t to = text.find(std::string("\n") + kFormatDocEnd);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  EXPECT_EQ(text.substr(from + begin.size(), to - from - begin.size()), record_tables())
      << "put the output of `msmemscope-synth --format-doc` between the two markers";
}

}  // namespace
}  // namespace memscope
