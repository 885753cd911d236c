#include "trace/fold_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trace/fold_kept.h"

namespace memscope {
namespace {

namespace fs = std::filesystem;

// A tick or two more may be the same nanosecond, and belong to the past as well.
constexpr uint64_t kTicksOfANanosecond = 16;

bool is_definition(uint8_t kind) {
  return kind >= static_cast<uint8_t>(Kind::kLane) && kind <= static_cast<uint8_t>(Kind::kStack);
}

}  // namespace

// The definitions of a lane that are in force.
class FoldLog::LaneState {
 public:
  LaneState() { append_record(LaneRecord{.keeps_ids = 1}, 0, 0, lane_); }

  void define(std::span<const uint64_t> words) {
    if (static_cast<Kind>(words[0] & 0xff) == Kind::kLane) {
      const auto lane = decode_record<LaneRecord>(words);
      const bool keeps = lane && lane->keeps_ids != 0;
      if (!keeps) definitions_.clear();
      // Last, and so that it forgets nothing.
      lane_.clear();
      if (lane) {
        append_record(
            LaneRecord{.tid = lane->tid, .thread_name = lane->thread_name, .keeps_ids = 1}, 0, 0,
            lane_);
      }
      return;
    }
    definitions_.emplace_back(words.begin(), words.end());
    definitions_.back()[0] &= UINT32_MAX;  // no time passes
  }

  // Chunks that define all of it, as large as a slot at most; one at least.
  std::vector<std::vector<uint64_t>> chunks() const {
    std::vector<std::vector<uint64_t>> chunks(1);
    const auto put = [&](const std::vector<uint64_t>& record) {
      if ((chunks.back().size() + record.size()) * sizeof(uint64_t) > kSlotRecordBytes) {
        chunks.emplace_back();
      }
      chunks.back().insert(chunks.back().end(), record.begin(), record.end());
    };
    for (const auto& record : definitions_) put(record);
    put(lane_);
    return chunks;
  }

 private:
  std::vector<std::vector<uint64_t>> definitions_;
  std::vector<uint64_t> lane_;
};

namespace {

Error cannot(const char* what, const fs::path& path) {
  return Error{std::string("cannot ") + what + " " + path.string() + ": " + std::strerror(errno)};
}

uint64_t kinds_of(std::span<const uint64_t> words) {
  uint64_t kinds = 0;
  for (size_t at = 0; at < words.size(); at += record_words(words[at])) {
    kinds |= uint64_t{1} << (words[at] & 63);
  }
  return kinds;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

// -- the lane of the past -------------------------------------------------------------------------

uint64_t FoldLane::string(uint64_t ticks, const StringTable& strings, StringId id) {
  if (strings.text(id).empty()) return 0;
  const auto [at, fresh] = strings_.try_emplace(id.value, strings_.size() + 1);
  if (fresh) {
    record(ticks, StringRecord{.id = at->second, .text = strings.text(id)});
    return strings_.size();
  }
  return at->second;
}

uint32_t FoldLane::stack(uint64_t ticks, const StackTable& stacks, const StringTable& strings,
                         StackId id) {
  std::vector<StackId> missing;
  uint32_t node = 0;
  for (; id.value != 0; id = stacks.parent(id)) {
    if (const auto found = stacks_.find(id.value); found != stacks_.end()) {
      node = found->second;
      break;
    }
    missing.push_back(id);
  }
  for (auto next = missing.rbegin(); next != missing.rend(); ++next) {
    const FrameId frame_id = stacks.innermost(*next);
    auto known = frames_.find(frame_id.value);
    if (known == frames_.end()) {
      const Frame& frame = stacks.frame(frame_id);
      const FrameRecord record_of_it{.id = frames_.size() + 1,
                                     .kind = static_cast<uint64_t>(frame.kind),
                                     .file = string(ticks, strings, frame.file),
                                     .function = string(ticks, strings, frame.function),
                                     .line = frame.line,
                                     .end_line = frame.end_line,
                                     .first_line = frame.first_line,
                                     .module = string(ticks, strings, frame.module),
                                     .offset = frame.offset};
      record(ticks, record_of_it);
      known = frames_.insert({frame_id.value, record_of_it.id}).first;
    }
    const auto number = static_cast<uint32_t>(stacks_.size() + 1);
    record(ticks, StackRecord{.id = number, .parent = node, .frame = known->second});
    stacks_[next->value] = number;
    node = number;
  }
  return node;
}

uint64_t* FoldLane::room(uint64_t ticks, size_t words) {
  constexpr size_t kWords = kSlotRecordBytes / sizeof(uint64_t);
  constexpr size_t kTime = 2;
  if (words + kTime > kWords) return nullptr;
  words_.resize(kWords);
  if (used_ + words + kTime > kWords) flush();
  if (used_ == 0) base_ticks_ = ticks_ = std::max(ticks_, ticks);
  if (ticks > ticks_ && ticks - ticks_ > UINT32_MAX) {
    words_[used_] = hot_word(Kind::kTime, 0, 0);
    words_[used_ + 1] = ticks;
    used_ += kTime;
    ticks_ = ticks;
  }
  return words_.data() + used_;
}

uint32_t FoldLane::take_dt(uint64_t ticks) {
  const auto dt = static_cast<uint32_t>(ticks > ticks_ ? ticks - ticks_ : 0);
  ticks_ += dt;
  return dt;
}

void FoldLane::commit(uint8_t kind, size_t words) {
  used_ += words;
  kinds_ |= uint64_t{1} << kind;
}

bool FoldLane::flush() {
  if (used_ != 0) {
    const ChunkMeta meta{.lane = kNumber,
                         .from = 0,
                         .lane_seq = seq_++,
                         .base_ticks = base_ticks_,
                         .last_ticks = ticks_,
                         .kinds = kinds_,
                         .slot_index = 0};
    failed_ |= !out_.append(meta, std::as_bytes(std::span(words_).first(used_)));
  }
  used_ = 0;
  kinds_ = 0;
  return !failed_;
}

// -- the log --------------------------------------------------------------------------------------

Result<FoldLog> FoldLog::open(const fs::path& directory) {
  FoldLog log;
  log.directory_ = directory;
  DamageLog damage;
  std::error_code error;
  // The slab first, as TraceReader does; where it lies elsewhere, what it has is newer than the
  // closed files all the same: the agent empties it before it goes on in another file.
  SlabCopy slab;
  if (fs::exists(directory / kSlabName, error)) {
    if (auto file = InputFile::open(directory / kSlabName)) {
      slab = read_slab(file.value(), kNoPid, damage);
    }
  }
  std::vector<LogIndex> indexes;
  // What is last before any is read: one that comes later makes this one a closed file, but what
  // came into it meanwhile is not in its index.
  uint32_t newest = 1;
  for (uint32_t number = 1; number <= newest; ++number) {
    char name[kSegmentNameBytes];
    segment_name(name, number);
    auto file = InputFile::open(directory / name);
    if (!file) return file.error();
    LogHeader header{};
    if (file.value().read_at(0, &header, sizeof(header)) != sizeof(header) ||
        header.magic != kLogMagic || header.major != kFormatMajor ||
        header.header_bytes != sizeof(header)) {
      if (number != 1) break;
      return Error{file.value().path().string() + " at offset 0: not a log that can be folded"};
    }
    if (number == 1) {
      log.header_ = header;
      number = newest = log.first_segment_ = segment_of(header.flags);
      for (segment_name(name, newest + 1); fs::exists(directory / name, error);) {
        segment_name(name, ++newest + 1);
      }
    }
    log.last_segment_ = number;
    indexes.push_back(index_log(file.value(), header.header_bytes, damage));
    log.files_.push_back(std::move(file).value());
  }
  if (log.files_.size() > 1) --log.last_segment_;
  log.lanes_ = assemble_lanes(log.files_, std::move(indexes), slab, damage);
  if (!damage.empty()) return Error{damage.lines().front() + "; a damaged log is not folded"};
  return log;
}

bool FoldLog::is_live(const Piece& piece) const {
  return piece.in_slab() || piece.file + size_t{1} == files_.size();
}

uint64_t FoldLog::bytes() const {
  uint64_t sum = 0;
  for (size_t i = 0; i + 1 < files_.size(); ++i) sum += files_[i].size();
  return sum;
}

Error FoldLog::unreadable(const Piece& piece) const {
  return Error{files_[piece.file].path().string() + " at offset " + std::to_string(piece.offset) +
               ": this chunk cannot be read; a damaged log is not folded"};
}

bool FoldLog::read(const Piece& piece) {
  const size_t size = piece.to - piece.from;
  zstd_->compressed.resize(piece.compressed);
  words_.resize(size / sizeof(uint64_t));
  if (files_[piece.file].read_at(piece.offset, zstd_->compressed.data(), piece.compressed) !=
          piece.compressed ||
      ZSTD_getFrameContentSize(zstd_->compressed.data(), piece.compressed) != size ||
      ZSTD_decompressDCtx(zstd_->context, words_.data(), size, zstd_->compressed.data(),
                          piece.compressed) != size) {
    return false;
  }
  for (size_t at = 0; at < words_.size();) {
    const size_t length = record_words(words_[at]);
    if (length == 0 || length > words_.size() - at) return false;
    at += length;
  }
  return true;
}

uint64_t FoldLog::window_astride(uint64_t ticks) {
  if (lanes_.empty() || lanes_[0].lane != 0) return 0;
  uint64_t least = 0;
  for (const Piece& piece : lanes_[0].pieces) {
    if (piece.in_slab() || piece.before || piece.last_ticks <= ticks ||
        (piece.kinds & kOwnTimeKinds) == 0 || !read(piece)) {
      continue;
    }
    uint64_t clock = piece.base_ticks;
    for (size_t at = 0; at < words_.size(); at += record_words(words_[at])) {
      const auto kind = static_cast<Kind>(words_[at] & 0xff);
      clock = kind == Kind::kTime ? words_[at + 1] : clock + (words_[at] >> 32);
      if (clock <= ticks) continue;
      const std::span record(words_.data() + at, record_words(words_[at]));
      uint64_t own = 0;
      if (kind == Kind::kSeed) {
        if (const auto seed = decode_record<SeedRecord>(record)) own = seed->window_ticks;
      } else if (kind == Kind::kWindow) {
        if (const auto window = decode_record<WindowRecord>(record)) own = window->ticks;
      }
      if (own != 0 && own <= ticks) least = least == 0 ? own : std::min(least, own);
    }
  }
  return least;
}

uint64_t FoldLog::cut(uint64_t keep_bytes) {
  uint64_t horizon = ~uint64_t{0}, all = 0;
  std::vector<std::pair<uint64_t, uint64_t>> closed;  // last tick, bytes
  for (const LaneIndex& lane : lanes_) {
    if (lane.lane == FoldLane::kNumber) continue;
    for (const Piece& piece : lane.pieces) {
      if (is_live(piece)) {
        horizon = std::min(horizon, piece.base_ticks);
      } else if (!piece.before) {
        const uint64_t size = sizeof(ChunkHeader) + piece.compressed;
        closed.emplace_back(piece.last_ticks, size);
        all += size;
      }
    }
  }
  if (files_.size() < 2 || closed.empty()) return 0;
  std::sort(closed.rbegin(), closed.rend());
  uint64_t kept = 0, ticks = 0;
  for (const auto& [last, size] : closed) {
    kept += size;
    if (kept > keep_bytes) {
      ticks = last;
      break;
    }
  }
  if (ticks == 0) return 0;
  if (horizon != ~uint64_t{0}) {
    ticks = std::min(ticks, horizon > kTicksOfANanosecond ? horizon - kTicksOfANanosecond : 0);
  }
  while (const uint64_t opened = window_astride(ticks + kTicksOfANanosecond)) {
    // Before it also where it is within the nanosecond.
    ticks = opened > kTicksOfANanosecond ? opened - kTicksOfANanosecond - 1 : 0;
  }
  uint64_t folded = 0;
  for (const auto& [last, size] : closed) folded += last <= ticks ? size : 0;
  constexpr uint64_t kLeastShare = 8;
  return folded * kLeastShare >= all ? ticks : 0;
}

Result<void> FoldLog::copy(const Piece& piece, LogWriter& out) {
  std::vector<std::byte> chunk(sizeof(ChunkHeader) + piece.compressed);
  if (files_[piece.file].read_at(piece.offset - sizeof(ChunkHeader), chunk.data(), chunk.size()) !=
      chunk.size()) {
    return unreadable(piece);
  }
  if (!out.append_chunk(chunk)) return cannot("write", directory_ / kFoldDraftName);
  return {};
}

// Takes in what a lane has before the cut; `rest` becomes the pieces with something after it.
Result<FoldLog::Position> FoldLog::look_through(const LaneIndex& lane, const Request& request,
                                                LaneState& state, FoldKept& kept,
                                                std::vector<Piece>& rest) {
  const uint64_t wanted = kept.kinds() | (lane.lane == 0 ? 0 : kDefinitionKinds);
  Position start;
  bool over = false;
  for (const Piece& piece : lane.pieces) {
    if (is_live(piece)) {
      // Newer than the cut, and so is what the lane has behind it, though its file may be older: a
      // slot that filled up while the file was closed comes into the next one.
      over = true;
      continue;
    }
    if (over) {
      rest.push_back(piece);
      continue;
    }
    start = piece.before ? Position{piece.lane_seq, piece.base_ticks, 0}
                         : Position{piece.lane_seq, piece.last_ticks, piece.to};
    const bool astride = !piece.before && piece.last_ticks > request.ticks;
    if (!astride && (piece.kinds & wanted) == 0) continue;
    if (!read(piece)) return unreadable(piece);
    uint64_t clock = piece.base_ticks;
    const size_t skip = piece.skip_to > piece.from ? piece.skip_to - piece.from : 0;
    for (size_t at = 0; at < words_.size(); at += record_words(words_[at])) {
      const std::span record(words_.data() + at, record_words(words_[at]));
      const auto kind = static_cast<uint8_t>(record[0] & 0xff);
      const bool is_time = kind == static_cast<uint8_t>(Kind::kTime);
      const uint64_t then = is_time ? record[1] : clock + (record[0] >> 32);
      if (astride && then > request.ticks) {
        start = {piece.lane_seq, clock, static_cast<uint32_t>(piece.from + at * sizeof(uint64_t))};
        rest.push_back(piece);
        over = true;
        break;
      }
      clock = then;
      if (is_definition(kind)) {
        state.define(record);
      } else if (kind < 64 && at * sizeof(uint64_t) >= skip) {
        kept.add(clock, record);
      }
    }
  }
  return start;
}

// The kept records, as the beginning of the agent's lane.
bool FoldLog::write_kept(FoldKept& kept, const Position& start, uint64_t ticks, LogWriter& out) {
  constexpr size_t kChunkWords = size_t{16} << 10;
  ChunkMeta meta{.lane = 0, .lane_seq = start.lane_seq, .slot_index = mark_before(start.at)};
  std::vector<uint64_t> words{hot_word(Kind::kTime, 0, 0), header_.ticks};
  uint64_t base = header_.ticks, clock = base;
  const auto flush = [&] {
    meta.base_ticks = base;
    // What follows the last one is after the cut, and what follows the others is not.
    meta.last_ticks = ticks;
    meta.kinds = kinds_of(words);
    const bool done = out.append(meta, std::as_bytes(std::span(words)));
    words.clear();
    base = clock;
    return done;
  };
  for (const FoldKept::Entry& entry : kept.take()) {
    if (words.size() + entry.words.size() > kChunkWords && !words.empty() && !flush()) return false;
    const uint64_t delta = entry.ticks > clock ? entry.ticks - clock : 0;
    if (delta > UINT32_MAX) {
      words.push_back(hot_word(Kind::kTime, 0, 0));
      words.push_back(entry.ticks);
    }
    words.insert(words.end(), entry.words.begin(), entry.words.end());
    uint64_t& first = words[words.size() - entry.words.size()];
    first = (first & UINT32_MAX) | (delta > UINT32_MAX ? 0 : delta << 32);
    clock += delta;
  }
  return words.empty() || flush();
}

Result<void> FoldLog::write(const Request& request, LogWriter& out) {
  const auto failed = [&] { return cannot("write", directory_ / kFoldDraftName); };
  FoldKept kept(header_.ticks, request.ticks, request.keep_steps);
  Position start_of_lane0;
  for (const LaneIndex& lane : lanes_) {
    if (lane.lane == FoldLane::kNumber) continue;  // the past as it was folded before
    LaneState state;
    std::vector<Piece> rest;
    auto start = look_through(lane, request, state, kept, rest);
    if (!start) return start.error();
    if (lane.lane == 0) {
      start_of_lane0 = start.value();
    } else if (!lane.pieces.empty() && !is_live(lane.pieces.front())) {
      const ChunkMeta meta{.lane = lane.lane,
                           .from = 0,
                           .lane_seq = start.value().lane_seq,
                           .base_ticks = start.value().clock,
                           .last_ticks = request.ticks,
                           .kinds = kDefinitionKinds,
                           .slot_index = mark_before(start.value().at)};
      for (const auto& chunk : state.chunks()) {
        if (!out.append(meta, std::as_bytes(std::span(chunk)))) return failed();
      }
    }
    for (const Piece& piece : rest) {
      if (auto copied = copy(piece, out); !copied) return copied;
    }
  }
  if (!write_kept(kept, start_of_lane0, request.ticks, out)) return failed();
  FoldLane past(out);
  request.past(past);
  if (!past.flush()) return failed();
  return {};
}

Result<uint64_t> FoldLog::replace(const Request& request) {
  const fs::path draft = directory_ / kFoldDraftName;
  const Descriptor file(::open(draft.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return cannot("make", draft);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{draft.string() + ": another process folds this trace"};
  }
  std::vector<std::byte> buffer(LogWriter::kBufferBytes);
  LogWriter out(buffer);
  LogHeader header = header_;
  header.flags = flags_of_segment(last_segment_);
  if (ftruncate(file.get(), 0) != 0 || !out.open(file.get(), header)) {
    const Error error = cannot("write", draft);
    unlink(draft.c_str());
    return error;
  }
  if (auto written = write(request, out); !written) {
    unlink(draft.c_str());
    return written.error();
  }
  const uint64_t size = out.bytes();
  if (rename(draft.c_str(), (directory_ / kLogName).c_str()) != 0) {
    const Error error = cannot("rename", draft);
    unlink(draft.c_str());
    return error;
  }
  for (uint32_t number = first_segment_ + 1; number <= last_segment_; ++number) {
    char name[kSegmentNameBytes];
    segment_name(name, number);
    unlink((directory_ / name).c_str());
  }
  return size;
}

}  // namespace memscope
