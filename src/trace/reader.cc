#include "trace/reader.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "trace/lane_merge.h"
#include "trace/records.h"

namespace memscope {

namespace fs = std::filesystem;

struct TraceReader::Impl {
  TraceSource source;
  std::vector<LaneIndex> lanes;
  TraceInfo info;
  LaneMerge merge;
  std::array<uint64_t, 128> counts{};
  // What next() hands out one by one.
  std::vector<Event> batch = std::vector<Event>(256);
  size_t batch_at = 0, batch_end = 0;

  size_t fill(std::span<Event> out);
  void rewind() {
    merge = LaneMerge(source, lanes, kAllKinds, true);
    counts = {};
    batch_at = batch_end = 0;
  }
};

namespace {

constexpr const char* kAdvice = "give a run directory or a trace.msm that msmemscope wrote";

// meta.json may say that the slab lies elsewhere: on a local disk, where the run directory is on a
// network file system.
fs::path slab_elsewhere(const fs::path& directory) {
  const auto meta = InputFile::open(directory / kMetaName);
  constexpr uint64_t kMaxMeta = 1 << 20;
  if (!meta || meta.value().size() > kMaxMeta) return {};
  std::string text(meta.value().size(), '\0');
  text.resize(meta.value().read_at(0, text.data(), text.size()));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("slab") || !json["slab"].is_string()) return {};
  const auto slab = json["slab"].get<std::string>();
  if (slab.empty()) return {};  // deleted at a clean end
  return directory / slab;      // an absolute one replaces the directory
}

// Reads and checks the log's header.
Result<LogHeader> read_log_header(const InputFile& file) {
  const std::string name = file.path().string();
  LogHeader header{};
  const size_t got = file.read_at(0, &header, sizeof(header));
  if (got == 0) return Error{name + " is empty (0 bytes): nothing was recorded; record again"};
  if (got >= sizeof(header.magic) && header.magic != kLogMagic) {
    return Error{name + " at offset 0: not a trace of MemScope (it starts with other bytes); " +
                 kAdvice};
  }
  if (got < sizeof(header)) {
    return Error{name + " at offset " + std::to_string(got) +
                 ": the file ends within its 64-byte header; nothing can be read, record again"};
  }
  if (header.major != kFormatMajor) {
    return Error{name + " at offset 8: format " + std::to_string(header.major) + "." +
                 std::to_string(header.minor) + ", but this msmemscope reads " +
                 std::to_string(kFormatMajor) +
                 ".x; use the msmemscope that wrote it or a newer one"};
  }
  if (header.header_bytes < sizeof(header) || header.header_bytes > file.size()) {
    return Error{name + " at offset 20: the header says it is " +
                 std::to_string(header.header_bytes) + " bytes long; the file is damaged"};
  }
  return header;
}

// A log and the segments that go on where it ends. `header` becomes that of the last one as far as
// the flags are concerned.
struct OpenLog {
  std::vector<InputFile> files;
  std::vector<uint32_t> header_bytes;
  LogHeader header{};
  bool sealed = false;
};

// Opens trace.msm and its segments; `first` is trace.msm as it was found before.
Result<OpenLog> open_log(const fs::path& path, DamageLog& damage) {
  OpenLog log;
  auto first = InputFile::open(path);
  if (!first) return first.error();
  auto header = read_log_header(first.value());
  if (!header) return header.error();
  log.header = header.value();
  log.sealed = (log.header.flags & kSealedAfterDeath) != 0;
  log.header_bytes.push_back(log.header.header_bytes);
  log.files.push_back(std::move(first).value());
  if (path.filename() != kLogName) return log;
  std::error_code error;
  for (uint32_t number = segment_of(log.header.flags) + 1;; ++number) {
    char name[kSegmentNameBytes];
    segment_name(name, number);
    const fs::path next = path.parent_path() / name;
    if (!fs::exists(next, error)) break;
    auto file = InputFile::open(next);
    if (!file) {
      damage.add(file.error().message);
      break;
    }
    if (file.value().size() < sizeof(LogHeader)) break;  // killed while it was made
    // Closed by now: with what has come into the one before since it was opened.
    auto& before = log.files.back();
    if (auto whole = InputFile::open(before.path())) before = std::move(whole).value();
    const auto its_header = read_log_header(file.value());
    if (!its_header || its_header.value().pid != log.header.pid ||
        segment_of(its_header.value().flags) != number) {
      damage.add(its_header
                     ? next.string() + " at offset 0: a segment of another log; it was left aside"
                     : its_header.error().message);
      break;
    }
    log.sealed = log.sealed || (its_header.value().flags & kSealedAfterDeath) != 0;
    log.header_bytes.push_back(its_header.value().header_bytes);
    log.files.push_back(std::move(file).value());
  }
  return log;
}

// As open_log(), of one moment: between two looks a fold may replace the log's beginning.
Result<OpenLog> open_log_whole(const fs::path& path, DamageLog& all_damage) {
  for (int attempt = 0;; ++attempt) {
    DamageLog damage;
    auto log = open_log(path, damage);
    constexpr int kAttempts = 10;
    const auto done = [&] {
      for (const std::string& line : damage.lines()) all_damage.add(line);
      return std::move(log);
    };
    if (!log || attempt == kAttempts) return done();
    const auto again = InputFile::open(path);
    LogHeader header{};
    if (!again || again.value().read_at(0, &header, sizeof(header)) != sizeof(header) ||
        segment_of(header.flags) == segment_of(log.value().header.flags)) {
      return done();
    }
  }
}

struct Paths {
  fs::path directory, log, slab;
};

Result<Paths> find_files(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return Error{path.string() + ": " + (error ? error.message() : "no such file or directory") +
                 "; " + kAdvice};
  }
  Paths paths;
  if (!fs::is_directory(status)) {
    paths.log = path;
    paths.directory = path.parent_path();
    if (path.filename() != kLogName) return paths;
  } else {
    paths.directory = path;
    if (fs::exists(path / kLogName, error)) paths.log = path / kLogName;
  }
  const fs::path beside = paths.directory / kSlabName;
  if (fs::exists(beside, error)) {
    paths.slab = beside;
  } else if (const fs::path other = slab_elsewhere(paths.directory);
             !other.empty() && fs::exists(other, error)) {
    paths.slab = other;
  }
  if (paths.log.empty() && paths.slab.empty()) {
    return Error{path.string() + ": neither " + kLogName + " nor " + kSlabName +
                 " in this directory; " + kAdvice};
  }
  return paths;
}

// Anchors tie ticks to clocks: the log's header, lane 0's anchor records, the slab's slots.
ClockMap make_clock(TraceSource& source, std::span<const LaneIndex> lanes, TickSource ticks,
                    std::vector<ClockAnchor> anchors) {
  constexpr size_t kMaxAnchors = 1 << 20;  // one a second: twelve days; more are thinned anyway
  for (const SlabCopy::Slot& slot : source.slab.slots) {
    anchors.push_back({slot.base_ticks, slot.mono_ns, slot.real_ns});
  }
  if (!lanes.empty() && lanes[0].lane == 0) {
    LaneMerge merge(source, lanes.first(1), kind_bit(Kind::kAnchor), false);
    std::vector<Event> events(64);
    for (size_t count; (count = merge.fill(events)) != 0;) {
      for (size_t i = 0; i < count && anchors.size() < kMaxAnchors; ++i) {
        const auto anchor = decode_record<AnchorRecord>(events[i].words);
        if (anchor) anchors.push_back({anchor->ticks, anchor->mono_ns, anchor->real_ns});
      }
    }
  }
  return ClockMap(ticks, std::move(anchors));
}

}  // namespace

Result<TraceReader> TraceReader::open(const fs::path& path) {
  auto paths = find_files(path);
  if (!paths) return paths.error();
  auto impl = std::make_unique<Impl>();
  TraceSource& source = impl->source;
  impl->info.directory = paths.value().directory;
  impl->info.log = paths.value().log;
  impl->info.slab = paths.value().slab;

  LogHeader header{};
  header.tick_source = static_cast<uint32_t>(TickSource::kTsc);
  bool has_log = false;
  bool sealed = false;
  if (!impl->info.log.empty()) {
    auto file = InputFile::open(impl->info.log);
    if (!file) return file.error();
    auto read = read_log_header(file.value());
    if (read) {
      header = read.value();
      has_log = true;
    } else if (impl->info.slab.empty()) {
      return read.error();
    } else {
      source.damage.add(read.error().message);
      source.log.push_back(std::move(file).value());
    }
  }
  // The slab first: what the agent moves from it meanwhile is then in the log.
  if (!impl->info.slab.empty()) {
    auto slab = InputFile::open(impl->info.slab);
    std::error_code error;
    if (!slab && !fs::exists(impl->info.slab, error)) {
      impl->info.slab.clear();  // it went into the log this very moment
    } else if (slab) {
      source.slab = read_slab(slab.value(), has_log ? header.pid : kNoPid, source.damage);
    } else {
      source.damage.add(slab.error().message);
    }
  }
  std::vector<LogIndex> indexes;
  if (has_log) {
    auto log = open_log_whole(impl->info.log, source.damage);
    if (!log) return log.error();
    sealed = log.value().sealed;
    source.log = std::move(log.value().files);
    for (size_t i = 0; i < source.log.size(); ++i) {
      indexes.push_back(index_log(source.log[i], log.value().header_bytes[i], source.damage));
    }
  }
  if (source.log.empty()) source.log.emplace_back();
  const auto is_empty = [](const LogIndex& index) {
    return index.pieces.empty() && index.before.empty();
  };
  const bool nothing =
      std::all_of(indexes.begin(), indexes.end(), is_empty) && source.slab.slots.empty();
  if (nothing && has_log && indexes.back().tail_bytes == 0 && impl->info.slab.empty() &&
      !fs::exists(impl->info.directory / kMetaName)) {  // with it: killed before anything came
    source.damage.add(source.log.front().path().string() + " at offset " +
                      std::to_string(header.header_bytes) +
                      ": nothing after the header (an incomplete copy?); record again");
  }
  impl->lanes = assemble_lanes(source.log, std::move(indexes), source.slab, source.damage);
  if (nothing && !source.damage.empty()) return Error{source.damage.lines().front()};

  std::vector<ClockAnchor> anchors;
  if (has_log) anchors.push_back({header.ticks, header.mono_ns, header.real_ns});
  source.clock = make_clock(source, impl->lanes, static_cast<TickSource>(header.tick_source),
                            std::move(anchors));
  TraceInfo& info = impl->info;
  info.format_major = has_log ? header.major : kFormatMajor;
  info.format_minor = header.minor;
  info.first_anchor_ns = header.real_ns;
  info.sealed = sealed;
  info.clock_rate_unknown = source.clock.rate_unknown();
  TraceReader reader(std::move(impl));
  reader.scan(kInfoKinds, [&](const Event& event) {
    add_to_info(event, source.clock, info);
    return true;
  });
  if (const auto rate = info.configs.find(std::string(kHostSampleKey));
      rate != info.configs.end()) {
    source.host_sampling = host_sampling(rate->second);
  }
  info.ended = ended_of(info);
  if (info.ended == "killed" && info.slab.empty() && !info.sealed) {
    const fs::path other = slab_elsewhere(info.directory);
    const fs::path missing = other.empty() ? info.directory / kSlabName : other;
    source.damage.add(missing.string() +
                      " is missing, though the process was killed: its last events are lost; copy "
                      "it from where the process ran");
  }
  reader.rewind();
  return reader;
}

TraceReader::TraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

size_t TraceReader::Impl::fill(std::span<Event> out) {
  const size_t count = merge.fill(out);
  for (const Event& event : out.first(count)) {
    uint8_t kind = event.record_kind;
    if (kind == 0) {
      const bool alloc = event.kind == EventKind::kAlloc;
      kind = static_cast<uint8_t>(event.has_totals ? (alloc ? Kind::kPoolAlloc : Kind::kPoolFree)
                                                   : (alloc ? Kind::kAlloc : Kind::kFree));
    }
    ++counts[kind & 127u];
  }
  return count;
}

bool TraceReader::next(Event& event) {
  Impl& impl = *impl_;
  if (impl.batch_at == impl.batch_end) {
    impl.batch_at = 0;
    impl.batch_end = impl.fill(impl.batch);
    if (impl.batch_end == 0) return false;
  }
  event = impl.batch[impl.batch_at++];
  return true;
}

size_t TraceReader::next_batch(std::span<Event> out) {
  Impl& impl = *impl_;
  if (impl.batch_at < impl.batch_end) {
    const size_t count = std::min(out.size(), impl.batch_end - impl.batch_at);
    std::copy_n(impl.batch.begin() + static_cast<ptrdiff_t>(impl.batch_at), count, out.begin());
    impl.batch_at += count;
    return count;
  }
  return impl.fill(out);
}

void TraceReader::rewind() {
  impl_->rewind();
}

void TraceReader::scan(uint64_t kinds, const std::function<bool(const Event&)>& callback) {
  LaneMerge merge(impl_->source, impl_->lanes, kinds, false);
  std::vector<Event> events(64);
  for (size_t count; (count = merge.fill(events)) != 0;) {
    for (size_t i = 0; i < count; ++i) {
      if (!callback(events[i])) return;
    }
  }
}

const TraceInfo& TraceReader::info() const {
  return impl_->info;
}
const StringTable& TraceReader::strings() const {
  return impl_->source.tables.strings;
}
const StackTable& TraceReader::stacks() const {
  return impl_->source.tables.stacks;
}
const std::vector<ThreadEntry>& TraceReader::threads() const {
  return impl_->source.tables.threads;
}
uint64_t TraceReader::to_ns(uint64_t ticks) const {
  return impl_->source.clock.real_ns(ticks);
}
const std::vector<std::string>& TraceReader::damage() const {
  return impl_->source.damage.lines();
}
uint64_t TraceReader::lost_bytes() const {
  return impl_->source.damage.lost_bytes();
}
uint64_t TraceReader::hole_bytes() const {
  return impl_->source.damage.hole_bytes();
}
const std::array<uint64_t, 128>& TraceReader::counts() const {
  return impl_->counts;
}

TraceReader::Extent TraceReader::extent() const {
  Extent extent;
  extent.lanes = impl_->lanes.size();
  for (const InputFile& file : impl_->source.log) extent.log_bytes += file.size();
  extent.segments = impl_->source.log.size();
  for (const LaneIndex& lane : impl_->lanes) {
    extent.pieces += lane.pieces.size();
    for (const Piece& piece : lane.pieces) extent.slab_pieces += piece.in_slab();
  }
  return extent;
}

}  // namespace memscope
