// libFuzzer: any bytes as a process's directory. Input: a u32 with the log's length, the log, the
// slab. Built with -DMEMSCOPE_FUZZ=ON and clang; seeds come from `reader_fuzzer` itself, see
// make_seeds() below:
//
//   MEMSCOPE_FUZZ_SEEDS=corpus ./reader_fuzzer -runs=0
//   ./reader_fuzzer -max_total_time=20 -max_len=200000 corpus
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "trace/reader.h"
#include "trace/records.h"
#include "trace/synth.h"
#include "trace/test_directory.h"

namespace memscope {
namespace {

std::string as_input(const std::filesystem::path& process) {
  const std::string log = read_bytes(process / kLogName);
  const auto length = static_cast<uint32_t>(log.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + log +
         read_bytes(process / kSlabName);
}

// A few small runs of every shape into the directory `out`.
void make_seeds(const std::filesystem::path& out) {
  std::filesystem::create_directories(out);
  TestDirectory directory;
  int count = 0;
  for (const SynthEnd end : {SynthEnd::kStop, SynthEnd::kExit, SynthEnd::kKilled}) {
    for (const uint32_t threads : {1u, 3u}) {
      SynthOptions options;
      options.output = directory.path();
      options.run_id = std::to_string(++count);
      options.steps = 5;
      options.layers = 2;
      options.scratch_sites = 3;
      options.threads = threads;
      options.devices = {"cpu", "cuda:0"};
      options.leaks = {{.bytes_per_step = 100, .holder = true}};
      options.owners = options.marks = options.counters = true;
      options.preexisting = 2;
      options.pause_after = 3;
      options.dropped = 1;
      options.end = end;
      const auto answers = synthesize(options);
      if (!answers) std::abort();
      write_bytes(out / options.run_id, as_input(answers.value().processes[0].directory));
    }
  }
}

// The checks of a chunk's header and of zstd keep a fuzzer out; it may leave them to us. A header
// whose check field is 0 gets the right one.
void mend(std::string& log) {
  for (size_t at = sizeof(LogHeader); at + sizeof(ChunkHeader) <= log.size();) {
    ChunkHeader header;
    std::memcpy(&header, log.data() + at, sizeof(header));
    if (header.magic != kChunkMagic) break;
    if (header.header_check == 0) {
      header.header_check = check_of(header);
      std::memcpy(log.data() + at, &header, sizeof(header));
    }
    at += sizeof(header) + std::min<size_t>(header.compressed_bytes, log.size() - at);
  }
}

// A second half of the inputs is uncompressed records: one chunk made here.
std::string log_of_records(std::string_view records) {
  records = records.substr(0, kSlotRecordBytes / 8 * 8);
  records = records.substr(0, records.size() / 8 * 8);
  LogHeader header{};
  header.magic = kLogMagic;
  header.major = kFormatMajor;
  header.tick_source = 1;
  header.header_bytes = sizeof(header);
  std::string log(reinterpret_cast<const char*>(&header), sizeof(header));
  if (records.empty()) return log;
  std::string frame(ZSTD_compressBound(records.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), records.data(), records.size(), 1));
  for (uint32_t lane = 0; lane < 2; ++lane) {
    ChunkHeader chunk{};
    chunk.magic = kChunkMagic;
    chunk.compressed_bytes = static_cast<uint32_t>(frame.size());
    chunk.lane = lane;
    chunk.to = static_cast<uint32_t>(records.size());
    chunk.kinds = kAllKinds;
    chunk.header_check = check_of(chunk);
    log += std::string(reinterpret_cast<const char*>(&chunk), sizeof(chunk)) + frame;
  }
  return log;
}

void read_everything(const std::filesystem::path& path) {
  auto opened = TraceReader::open(path);
  if (!opened) {
    if (opened.error().message.empty()) std::abort();
    return;
  }
  TraceReader& reader = opened.value();
  uint64_t before = 0, events = 0, again = 0;
  for (Event event; reader.next(event); ++events) {
    if (event.time < before || event.time == 0) std::abort();
    before = event.time;
    if (event.stack.value >= reader.stacks().size()) std::abort();
    if (event.thread.value >= reader.threads().size()) std::abort();
    reader.stacks().frames(event.stack);
    if (event.kind == EventKind::kRecord) {
      visit_record_kinds([&]<typename Record>(std::string_view) {
        if (static_cast<uint8_t>(Record::kKind) == event.record_kind) {
          decode_record<Record>(event.words);
        }
      });
    }
  }
  reader.rewind();
  std::array<Event, 7> batch;
  for (size_t count; (count = reader.next_batch(batch)) != 0;) again += count;
  if (again != events) std::abort();
}

}  // namespace
}  // namespace memscope

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* out = std::getenv("MEMSCOPE_FUZZ_SEEDS")) memscope::make_seeds(out);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using memscope::kLogName, memscope::kSlabName, memscope::log_of_records, memscope::mend;
  using memscope::read_everything, memscope::write_bytes;
  // One directory for all runs, in memory where there is such a place.
  static const std::filesystem::path directory = [] {
    std::string pattern = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    pattern += "/memscope-fuzz-XXXXXX";
    std::filesystem::path made = mkdtemp(pattern.data());
    static std::filesystem::path to_remove;
    to_remove = made;
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(to_remove, ignored);
    });
    return made;
  }();
  uint32_t length = 0;
  if (size < sizeof(length)) return 0;
  std::memcpy(&length, data, sizeof(length));
  std::string_view rest(reinterpret_cast<const char*>(data) + sizeof(length), size - 4);
  std::string log;
  if (length >> 31 != 0) {  // raw records, then a slab
    log = log_of_records(rest.substr(0, length & 0xffff));
    rest.remove_prefix(std::min<size_t>(length & 0xffff, rest.size()));
  } else {
    log = rest.substr(0, length);
    rest.remove_prefix(std::min<size_t>(length, rest.size()));
    mend(log);
  }
  write_bytes(directory / kLogName, log);
  if (rest.empty()) {
    std::error_code ignored;
    std::filesystem::remove(directory / kSlabName, ignored);
  } else {
    write_bytes(directory / kSlabName, std::string(rest));
  }
  read_everything(directory);
  return 0;
}
