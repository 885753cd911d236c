#include "capture/python_layout.h"

#include <cstring>

namespace memscope::capture {
namespace {

// _Py_DebugOffsets is an array of 64-bit words behind its cookie; which word is which depends on
// the minor version. Indexes of the words that the walk needs:
struct DebugWords {
  int minor;
  uint8_t thread_head, frame_previous, frame_code, frame_instruction, frame_owner;
  uint8_t code_file, code_function, code_line_table, code_first_line, code_bytecode;
  uint8_t object_type, type_name, bytes_size, bytes_data;
  uint8_t text_state, text_length, text_ascii;
};

constexpr uint8_t kCookieWord = 0, kVersionWord = 1, kFreeThreadedWord = 2;

constexpr DebugWords kDebugWords[] = {
    {13, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 47, 65, 66, 68, 69, 70},
    {14, 26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 53, 75, 76, 78, 79, 80},
};

}  // namespace

const PythonLayout* python_layout(int major, int minor) {
  if (major != 3) return nullptr;
  for (const PythonLayout& layout : kPythonLayouts) {
    if (layout.minor == minor) return &layout;
  }
  return nullptr;
}

bool parse_python_version(std::string_view text, int* major, int* minor, std::string_view* number) {
  size_t at = 0;
  auto read_number = [&](int* value) {
    size_t start = at;
    *value = 0;
    while (at < text.size() && at - start < 4 && text[at] >= '0' && text[at] <= '9') {
      *value = *value * 10 + (text[at++] - '0');
    }
    return at > start;
  };
  if (!read_number(major) || at >= text.size() || text[at++] != '.' || !read_number(minor)) {
    return false;
  }
  *number = text.substr(0, text.find(' '));
  return true;
}

const char* compare_with_debug_offsets(const PythonLayout& layout, const void* runtime) {
  const DebugWords* words = nullptr;
  for (const DebugWords& candidate : kDebugWords) {
    if (candidate.minor == layout.minor) words = &candidate;
  }
  if (words == nullptr) return "no debug offsets are known for this CPython version";
  auto word = [&](uint8_t index) {
    uint64_t value;
    std::memcpy(&value, static_cast<const char*>(runtime) + 8 * size_t{index}, sizeof value);
    return value;
  };
  const uint64_t cookie = word(kCookieWord);
  if (std::memcmp(&cookie, "xdebugpy", sizeof cookie) != 0) {
    return "_PyRuntime does not begin with CPython's debug offsets";
  }
  // PY_VERSION_HEX: 0x030D00F0 is 3.13.0 final.
  const uint64_t version = word(kVersionWord);
  if ((version >> 24) != 3 || ((version >> 16) & 0xff) != static_cast<uint64_t>(layout.minor)) {
    return "CPython's debug offsets are of another version";
  }
  if (word(kFreeThreadedWord) != 0) return "free-threaded CPython is not supported yet";
  const struct {
    uint8_t index;
    uint16_t expected;
  } pairs[] = {
      {words->thread_head, layout.thread_head},
      {words->frame_previous, layout.frame_previous},
      {words->frame_code, layout.frame_code},
      {words->frame_instruction, layout.frame_instruction},
      {words->frame_owner, layout.frame_owner},
      {words->code_file, layout.code_file},
      {words->code_function, layout.code_function},
      {words->code_line_table, layout.code_line_table},
      {words->code_first_line, layout.code_first_line},
      {words->code_bytecode, layout.code_bytecode},
      {words->object_type, kObjectType},
      {words->type_name, kTypeName},
      {words->bytes_size, kVarSize},
      {words->bytes_data, kBytesData},
      {words->text_state, kTextState},
      {words->text_length, kTextLength},
      {words->text_ascii, layout.text_ascii},
  };
  for (const auto& pair : pairs) {
    if (word(pair.index) != pair.expected) {
      return "CPython's own debug offsets differ from the layout known for its version";
    }
  }
  return nullptr;
}

}  // namespace memscope::capture
