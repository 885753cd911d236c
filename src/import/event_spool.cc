#include "import/event_spool.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <tuple>

namespace memscope {
namespace {

constexpr int kLevel = 1;  // it is read once or twice and thrown away

struct BlockHeader {
  uint32_t compressed = 0, size = 0;
};

auto key(const SpoolEntry& entry) {
  return std::tie(entry.part, entry.time, entry.id, entry.order);
}

std::filesystem::path temporary_directory() {
  std::error_code error;
  auto path = std::filesystem::temp_directory_path(error);
  return error ? std::filesystem::path("/tmp") : path;
}

// A file without a name.
int make_file(const std::filesystem::path& directory) {
  const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  // Not all file systems have O_TMPFILE.
  std::string pattern = (directory / "msmemscope-XXXXXX").string();
  const int named = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(pattern.c_str());
  return named;
}

template <typename T>
void append(std::vector<std::byte>& out, const T* items, size_t count) {
  const auto* bytes = reinterpret_cast<const std::byte*>(items);
  out.insert(out.end(), bytes, bytes + count * sizeof(T));
}

}  // namespace

struct EventSpool::Compressor {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  Compressor() = default;
  ~Compressor() { ZSTD_freeCCtx(context); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
};

EventSpool::EventSpool() : compressor_(std::make_unique<Compressor>()) {}

EventSpool::~EventSpool() {
  if (file_ >= 0) ::close(file_);
}

void EventSpool::add(SpoolEntry entry, std::span<const uint64_t> words) {
  const bool is_record = entry.kind == EventKind::kRecord;
  Batch& batch = is_record ? cold_ : hot_;
  if (is_record) {
    if (words.size() > kMaxWords) return;
    entry.addr = batch.words.size();
    entry.size = words.size();
    batch.words.insert(batch.words.end(), words.begin(), words.end());
  }
  batch.entries.push_back(entry);
  if (batch.bytes() >= kRunBytes) seal(batch, is_record);
}

Result<void> EventSpool::finish() {
  seal(hot_, false);
  seal(cold_, true);
  hot_ = {};
  cold_ = {};
  compressed_ = {};
  compressor_.reset();
  if (!error_.empty()) return Error{error_};
  return {};
}

void EventSpool::seal(Batch& batch, bool records) {
  if (batch.entries.empty()) return;
  const auto before = [](const SpoolEntry& a, const SpoolEntry& b) { return key(a) < key(b); };
  if (!std::is_sorted(batch.entries.begin(), batch.entries.end(), before)) {
    std::stable_sort(batch.entries.begin(), batch.entries.end(), before);
  }
  Run run;
  run.records = records;
  std::vector<std::byte> block;
  block.reserve(kBlockBytes + sizeof(SpoolEntry));
  uint16_t part = batch.entries.front().part;
  for (const SpoolEntry& entry : batch.entries) {
    if (entry.part != part || block.size() >= kBlockBytes) write_block(block, run, part);
    part = entry.part;
    append(block, &entry, 1);
    if (records) append(block, batch.words.data() + entry.addr, entry.size);
  }
  write_block(block, run, part);
  runs_.push_back(std::move(run));
  batch.entries.clear();
  batch.words.clear();
}

void EventSpool::write_block(std::vector<std::byte>& block, Run& run, uint16_t part) {
  compressed_.resize(sizeof(BlockHeader) + ZSTD_compressBound(block.size()));
  const size_t size = ZSTD_compressCCtx(
      compressor_->context, compressed_.data() + sizeof(BlockHeader),
      compressed_.size() - sizeof(BlockHeader), block.data(), block.size(), kLevel);
  if (ZSTD_isError(size) != 0) {
    error_ = std::string("events cannot be sorted: zstd says ") + ZSTD_getErrorName(size);
    return;
  }
  const BlockHeader header{static_cast<uint32_t>(size), static_cast<uint32_t>(block.size())};
  std::memcpy(compressed_.data(), &header, sizeof(header));
  if (run.parts.empty() || run.parts.back().part != part) {
    run.parts.push_back({part, stored_, stored_});
  }
  store(std::span(compressed_).first(sizeof(header) + size));
  run.parts.back().end = stored_;
  block.clear();
}

// Appends; what does not fit into memory goes to the file, all of it.
void EventSpool::store(std::span<const std::byte> bytes) {
  if (!error_.empty()) return;
  if (file_ < 0 && memory_.size() + bytes.size() <= kMemoryBytes) {
    memory_.insert(memory_.end(), bytes.begin(), bytes.end());
    stored_ += bytes.size();
    return;
  }
  const auto directory = temporary_directory();
  if (file_ < 0) file_ = make_file(directory);
  // What is in memory stays there: the file begins behind it.
  size_t done = 0;
  while (file_ >= 0 && done < bytes.size()) {
    const ssize_t wrote = ::pwrite(file_, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(stored_ - memory_.size() + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  if (done != bytes.size()) {
    error_ = directory.string() + ": " + std::strerror(errno) +
             " while sorting events; set TMPDIR to a directory with more room";
    return;
  }
  stored_ += bytes.size();
}

bool EventSpool::load(uint64_t at, std::span<std::byte> out) const {
  if (at + out.size() <= memory_.size()) {
    std::memcpy(out.data(), memory_.data() + at, out.size());
    return true;
  }
  size_t done = 0;
  while (file_ >= 0 && done < out.size()) {
    const ssize_t got = ::pread(file_, out.data() + done, out.size() - done,
                                static_cast<off_t>(at - memory_.size() + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done == out.size();
}

// -- reading
// ----------------------------------------------------------------------------------------

struct SpoolReader::Decompressor {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  Decompressor() = default;
  ~Decompressor() { ZSTD_freeDCtx(context); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
};

struct SpoolReader::Cursor {
  const EventSpool* spool = nullptr;
  ZSTD_DCtx* context = nullptr;
  uint64_t at = 0, end = 0;  // of what is not loaded yet
  std::vector<std::byte> block, compressed;
  size_t place = 0;  // of the entry in the block
  SpoolEntry entry;
  std::span<const uint64_t> words;
  bool damaged = false;

  bool load_block() {
    BlockHeader header;
    if (at >= end) return false;
    damaged = true;
    std::byte raw[sizeof(header)];
    if (!spool->load(at, raw)) return false;
    std::memcpy(&header, raw, sizeof(header));
    compressed.resize(header.compressed);
    if (!spool->load(at + sizeof(header), compressed)) return false;
    block.resize(header.size);
    const size_t got = ZSTD_decompressDCtx(context, block.data(), block.size(), compressed.data(),
                                           compressed.size());
    if (ZSTD_isError(got) != 0 || got != block.size()) return false;
    at += sizeof(header) + compressed.size();
    place = 0;
    damaged = false;
    return true;
  }
  bool next() {
    if (place >= block.size() && !load_block()) return false;
    std::memcpy(&entry, block.data() + place, sizeof(entry));
    place += sizeof(entry);
    words = {};
    if (entry.kind == EventKind::kRecord) {
      words = {reinterpret_cast<const uint64_t*>(block.data() + place), entry.size};
      place += entry.size * 8;
    }
    return true;
  }
};

SpoolReader::SpoolReader(const EventSpool& spool, uint16_t part, Which which)
    : decompressor_(std::make_unique<Decompressor>()) {
  for (const EventSpool::Run& run : spool.runs_) {
    if (which == kRecords && !run.records) continue;
    const auto at = std::lower_bound(
        run.parts.begin(), run.parts.end(), part,
        [](const EventSpool::Part& a, uint16_t number) { return a.part < number; });
    if (at == run.parts.end() || at->part != part) continue;
    auto cursor = std::make_unique<Cursor>();
    cursor->spool = &spool;
    cursor->context = decompressor_->context;
    cursor->at = at->begin;
    cursor->end = at->end;
    if (cursor->next()) {
      heap_.push_back(cursor.get());
      cursors_.push_back(std::move(cursor));
    } else {
      damaged_ = true;
    }
  }
  std::make_heap(heap_.begin(), heap_.end(),
                 [](const Cursor* a, const Cursor* b) { return key(b->entry) < key(a->entry); });
}

SpoolReader::~SpoolReader() = default;
SpoolReader::SpoolReader(SpoolReader&&) noexcept = default;
SpoolReader& SpoolReader::operator=(SpoolReader&&) noexcept = default;

const SpoolEntry* SpoolReader::next() {
  const auto after = [](const Cursor* a, const Cursor* b) { return key(b->entry) < key(a->entry); };
  if (last_ != nullptr) {
    // The one that was handed out: mostly its next entry is the least again.
    if (last_->next()) {
      if (heap_.empty() || !after(last_, heap_.front())) return &last_->entry;
      heap_.push_back(last_);
      std::push_heap(heap_.begin(), heap_.end(), after);
    } else {
      damaged_ = damaged_ || last_->damaged;
    }
  }
  if (heap_.empty()) {
    last_ = nullptr;
    return nullptr;
  }
  std::pop_heap(heap_.begin(), heap_.end(), after);
  last_ = heap_.back();
  heap_.pop_back();
  return &last_->entry;
}

std::span<const uint64_t> SpoolReader::words() const {
  return last_->words;
}
bool SpoolReader::damaged() const {
  return damaged_;
}

}  // namespace memscope
