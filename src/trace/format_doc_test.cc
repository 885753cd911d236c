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
  EXPECT_EQ(text, with_record_tables(text))
      << "bring it up to date: msmemscope-synth --format-doc docs/trace-format.md";
}

}  // namespace
}  // namespace memscope
