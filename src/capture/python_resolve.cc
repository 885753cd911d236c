#include "capture/python_resolve.h"

#include <cstring>
#include <span>

#include "capture/python_lines.h"
#include "capture/python_text.h"

namespace memscope::capture {
namespace {

template <class T>
T load(const void* object, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
  return value;
}

std::span<const uint8_t> bytes_of(const void* object) {
  if (object == nullptr) return {};
  const auto size = load<int64_t>(object, kVarSize);
  if (size <= 0) return {};
  return {static_cast<const uint8_t*>(object) + kBytesData, static_cast<size_t>(size)};
}

}  // namespace

bool resolve_frame(const PythonLayout& layout, const void* code_type, const RawFrame& frame,
                   char* scratch, size_t scratch_size, python_stack::Resolved* out) noexcept {
  *out = {};
  const void* code = reinterpret_cast<const void*>(frame.code);
  if (code == nullptr || load<const void*>(code, kObjectType) != code_type) return false;
  TextScratch text{scratch, scratch_size};
  out->file = python_text(layout, load<const void*>(code, layout.code_file), &text);
  out->function = python_text(layout, load<const void*>(code, layout.code_function), &text);
  const auto first_line = load<int32_t>(code, layout.code_first_line);
  out->first_line = first_line > 0 ? static_cast<uint32_t>(first_line) : 0;
  const SourceLines lines =
      source_lines(layout.line_table, bytes_of(load<const void*>(code, layout.code_line_table)),
                   first_line, static_cast<int64_t>(frame.instruction));
  out->line = lines.line;
  out->end_line = lines.end_line;
  return true;
}

}  // namespace memscope::capture
