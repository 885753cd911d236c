// Prints the stack of every alloc of SIZE bytes in a trace, a line each, innermost frame first:
//   py FUNCTION:LINE | c OBJECT+OFFSET@BUILD-ID | ...
// Arguments: the trace's directory, SIZE.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "trace/reader.h"

namespace {

using memscope::Event, memscope::EventKind, memscope::Frame, memscope::FrameId, memscope::FrameKind,
    memscope::TraceReader;

std::string text_of(const TraceReader& reader, const Frame& frame) {
  char place[64];
  const std::string_view file = reader.strings().text(frame.file);
  const std::string name(file.substr(file.rfind('/') + 1));
  if (frame.kind == FrameKind::kPython) {
    std::snprintf(place, sizeof place, ":%u", frame.line);
    return "py " + std::string(reader.strings().text(frame.function)) + place;
  }
  if (frame.offset == 0) return "c " + std::string(reader.strings().text(frame.function));
  std::snprintf(place, sizeof place, "+0x%llx@", static_cast<unsigned long long>(frame.offset));
  return "c " + name + place + std::string(reader.strings().text(frame.module));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const uint64_t size = std::strtoull(argv[2], nullptr, 10);
  auto opened = TraceReader::open(argv[1]);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 2;
  }
  TraceReader& reader = opened.value();
  for (Event event; reader.next(event);) {
    if (event.kind != EventKind::kAlloc || event.size != size) continue;
    std::string line;
    for (const FrameId id : reader.stacks().frames(event.stack)) {
      if (!line.empty()) line += " | ";
      line += text_of(reader, reader.stacks().frame(id));
    }
    std::puts(line.c_str());
  }
  return 0;
}
