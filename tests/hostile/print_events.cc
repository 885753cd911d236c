// Prints a trace's allocs, frees, undos and seeds of one layer, a line each, in order:
//   alloc SIZE | free SIZE | free ? | undo SIZE | seed SIZE
// A free has the size of the block that the trace has at its address, `?` where it has none.
// Arguments: the trace's directory, the layer's number (core/where.h).
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "trace/reader.h"
#include "trace/records.h"

namespace {

using memscope::Event, memscope::EventKind, memscope::Kind, memscope::TraceReader,
    memscope::UndoRecord, memscope::Where;

void say(const char* what, uint64_t size) {
  std::printf("%s %" PRIu64 "\n", what, size);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto layer = static_cast<memscope::Layer>(std::strtoul(argv[2], nullptr, 10));
  auto opened = TraceReader::open(argv[1]);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 2;
  }
  TraceReader& reader = opened.value();
  std::unordered_map<uint64_t, uint64_t> live, freed;  // address -> size
  for (Event event; reader.next(event);) {
    if (event.kind == EventKind::kRecord) {
      if (event.record_kind != static_cast<uint8_t>(Kind::kUndo)) continue;
      const auto undo = memscope::decode_record<UndoRecord>(event.words);
      if (!undo || Where::unpack(static_cast<uint16_t>(undo->where)).layer != layer) continue;
      live[undo->addr] = freed[undo->addr];
      say("undo", freed[undo->addr]);
      continue;
    }
    if (event.kind == EventKind::kWindow || event.where.layer != layer) continue;
    if (event.kind != EventKind::kFree) {
      live[event.addr] = event.size;
      say(event.kind == EventKind::kAlloc ? "alloc" : "seed", event.size);
      continue;
    }
    const auto block = live.find(event.addr);
    if (block == live.end()) {
      std::puts("free ?");
      continue;
    }
    say("free", block->second);
    freed[event.addr] = block->second;
    live.erase(block);
  }
  for (const std::string& line : reader.damage()) std::fprintf(stderr, "%s\n", line.c_str());
  return reader.damage().empty() ? 0 : 1;
}
