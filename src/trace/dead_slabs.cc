#include "trace/dead_slabs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <tuple>

#include "trace/chunk_check.h"
#include "trace/log_writer.h"
#include "trace/meta_text.h"
#include "trace/process_identity.h"
#include "trace/record_table.h"
#include "trace/slot_walk.h"

namespace memscope {
namespace {

constexpr uint32_t kMaxSlots = 1 << 14;  // a gigabyte of slab is the largest there is
constexpr size_t kPathBytes = 4096 + 64;

class File {
 public:
  File(const char* path, int flags) : fd_(open(path, flags | O_CLOEXEC | O_NOFOLLOW)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  uint64_t size() const {
    const off_t size = lseek(fd_, 0, SEEK_END);
    return size > 0 ? static_cast<uint64_t>(size) : 0;
  }
  // How many bytes there were.
  size_t read_at(uint64_t offset, void* to, size_t size) const {
    size_t got = 0;
    while (got < size) {
      const ssize_t part =
          pread(fd_, static_cast<char*>(to) + got, size - got, static_cast<off_t>(offset + got));
      if (part < 0 && errno == EINTR) continue;
      if (part <= 0) break;
      got += static_cast<size_t>(part);
    }
    return got;
  }

 private:
  int fd_;
};

// A used slot of the slab, and how far the log has it.
struct UsedSlot {
  uint32_t lane, index;
  uint64_t lane_seq;
  uint32_t in_log;  // bytes
  uint32_t needed;  // bytes that it must have: a chunk of it is cut short at the log's end

  auto key() const { return std::tuple(lane, lane_seq); }
};

struct Workspace {
  UsedSlot slots[kMaxSlots];
  uint64_t slot[kSlotBytes / sizeof(uint64_t)];
  std::byte compressed[LogWriter::kBufferBytes];
};

class Pages {
 public:
  Pages()
      : memory_(mmap(nullptr, sizeof(Workspace), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Pages() {
    if (memory_ != MAP_FAILED) munmap(memory_, sizeof(Workspace));
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  Workspace* get() const {
    return memory_ == MAP_FAILED ? nullptr : static_cast<Workspace*>(memory_);
  }

 private:
  void* memory_;
};

// For the whole process, not inherited by fork(), gone with us.
bool lock(const File& log) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(log.fd(), F_SETLK, &whole) == 0;
}

class Sealing {
 public:
  Sealing(const File& slab, const SlabHeader& header, const File& log, Workspace& work)
      : slab_(slab), header_(header), log_(log), work_(work) {}

  // A file of the log that goes on in another one. Before run(), in their order.
  bool look_through(const File& file) {
    LogHeader log_header{};
    return begun() && read_header(file, log_header) &&
           look_through_log(file, log_header.header_bytes) && end_ == file.size();
  }

  bool run() {
    LogHeader log_header{};
    if (!begun() || !read_header(log_, log_header) ||
        !look_through_log(log_, log_header.header_bytes) || !append_slots()) {
      return false;
    }
    log_header.flags |= kSealedAfterDeath;
    constexpr size_t kSize = sizeof(log_header.flags);
    return pwrite(log_.fd(), &log_header.flags, kSize, offsetof(LogHeader, flags)) == kSize;
  }

 private:
  bool begun() {
    if (!found_) find_used_slots();
    found_ = true;
    return true;
  }

  bool read_header(const File& file, LogHeader& header) const {
    return file.read_at(0, &header, sizeof(header)) == sizeof(header) &&
           header.magic == kLogMagic && header.major == kFormatMajor &&
           header.header_bytes >= sizeof(header) && header.pid == header_.pid;
  }

  static uint64_t offset_of(uint32_t index) {
    return kSlabHeaderBytes + uint64_t{index} * kSlotBytes;
  }

  void find_used_slots() {
    constexpr size_t kWords = sizeof(SlotHeader) / sizeof(uint64_t);
    for (uint32_t i = 0; i < header_.slot_count; ++i) {
      uint64_t words[kWords + 1] = {};  // the header, the first record's first word
      if (slab_.read_at(offset_of(i), words, sizeof(words)) != sizeof(words) || words[kWords] == 0)
        continue;
      work_.slots[count_++] = {.lane = static_cast<uint32_t>(words[0] >> 32),
                               .index = i,
                               .lane_seq = words[1],
                               .in_log = 0,
                               .needed = 0};
    }
    std::sort(work_.slots, work_.slots + count_,
              [](const UsedSlot& a, const UsedSlot& b) { return a.key() < b.key(); });
  }

  UsedSlot* slot_of(const ChunkHeader& chunk) {
    const std::tuple key(chunk.lane, chunk.lane_seq);
    UsedSlot* const end = work_.slots + count_;
    UsedSlot* found = std::lower_bound(
        work_.slots, end, key, [](const UsedSlot& slot, const auto& k) { return slot.key() < k; });
    return found != end && found->key() == key ? found : nullptr;
  }

  // How far the log has each slot, and where it ends. False where it is not sound, or its last
  // chunk is cut short and the slab does not have it.
  bool look_through_log(const File& log, uint64_t offset) {
    const uint64_t size = log.size();
    while (offset < size) {
      ChunkHeader chunk{};
      const size_t got = log.read_at(offset, &chunk, sizeof(chunk));
      if (got < sizeof(chunk)) break;  // cut short: its slot was not released yet
      if (fault_of(chunk) != nullptr) return false;
      UsedSlot* slot = slot_of(chunk);
      if (chunk.compressed_bytes > size - offset - sizeof(chunk)) {
        if (slot == nullptr) return false;
        slot->needed = chunk.to;
        break;
      }
      if (slot != nullptr && is_mark_before(chunk.slot_index)) {
        // Of a folded log: what stands for all before this byte of the slot.
        slot->in_log = std::max(slot->in_log, static_cast<uint32_t>(chunk.slot_index));
      } else if (slot != nullptr) {
        if (chunk.from > slot->in_log) return false;
        slot->in_log = std::max(slot->in_log, chunk.to);
      }
      offset += sizeof(chunk) + chunk.compressed_bytes;
    }
    end_ = offset;
    return true;
  }

  bool append_slots() {
    // The tail that is cut off here is in the slab.
    if (log_.size() > end_ && ftruncate(log_.fd(), static_cast<off_t>(end_)) != 0) return false;
    LogWriter writer(std::span<std::byte>(work_.compressed));
    if (!writer.resume(log_.fd(), end_)) return false;
    for (size_t i = 0; i < count_; ++i) {
      if (!append_slot(writer, work_.slots[i])) return false;
    }
    return true;
  }

  bool append_slot(LogWriter& writer, const UsedSlot& used) {
    constexpr size_t kHeaderWords = sizeof(SlotHeader) / sizeof(uint64_t);
    if (slab_.read_at(offset_of(used.index), work_.slot, kSlotBytes) != kSlotBytes) return false;
    const uint64_t* records = work_.slot + kHeaderWords;
    const uint64_t base_ticks = work_.slot[2];
    const size_t from = used.in_log / sizeof(uint64_t);
    const SlotWalk before = walk_slot(records, 0, base_ticks, from);
    if (!before.sound || before.end != from) return false;
    const SlotWalk walk = walk_slot(records, from, before.ticks);
    if (!walk.sound || walk.end * sizeof(uint64_t) < used.needed) return false;
    const ChunkMeta meta{.lane = used.lane,
                         .from = used.in_log,
                         .lane_seq = used.lane_seq,
                         .base_ticks = before.ticks,
                         .last_ticks = walk.ticks,
                         .kinds = walk.kinds,
                         .slot_index = used.index};
    return writer.append(meta, {reinterpret_cast<const std::byte*>(records + from),
                                (walk.end - from) * sizeof(uint64_t)});
  }

  const File& slab_;
  const SlabHeader& header_;
  const File& log_;
  Workspace& work_;
  size_t count_ = 0;
  uint64_t end_ = 0;
  bool found_ = false;
};

// The number of the file that a log is being written to: the last one with a whole header.
uint32_t last_segment(const char* directory, uint32_t first) {
  for (uint32_t last = first;; ++last) {
    char name[kSegmentNameBytes];
    segment_name(name, last + 1);
    char path[kPathBytes];
    std::snprintf(path, sizeof(path), "%s/%s", directory, name);
    const File next(path, O_RDONLY);
    if (!next.is_open() || next.size() < sizeof(LogHeader)) return last;
  }
}

// Where meta.json says that the slab is; false where it says nothing.
bool slab_elsewhere(const char* directory, char (&path)[kPathBytes]) {
  char name[kPathBytes];
  std::snprintf(name, sizeof(name), "%s/%s", directory, kMetaName);
  const File meta(name, O_RDONLY);
  char text[32 * 1024];
  const size_t got = meta.is_open() ? meta.read_at(0, text, sizeof(text) - 1) : 0;
  text[got] = '\0';
  return text_member(text, "slab", path, sizeof(path)) && path[0] == '/';
}

// The slab goes into the last file of the log.
bool seal_log(const char* directory, const char* log_path, const File& slab,
              const SlabHeader& header, Workspace& work) {
  const File first(log_path, O_RDWR);
  LogHeader log_header{};
  if (!first.is_open() || first.read_at(0, &log_header, sizeof(log_header)) != sizeof(log_header)) {
    return false;
  }
  const uint32_t number = segment_of(log_header.flags);
  const uint32_t last = last_segment(directory, number);
  if (last == number) return lock(first) && Sealing(slab, header, first, work).run();
  char path[kPathBytes];
  const auto file_path = [&](uint32_t segment) {
    char name[kSegmentNameBytes];
    segment_name(name, segment);
    std::snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
  };
  const File log(file_path(last), O_RDWR);
  if (!log.is_open() || !lock(log)) return false;
  Sealing sealing(slab, header, log, work);
  if (!sealing.look_through(first)) return false;
  for (uint32_t segment = number + 1; segment < last; ++segment) {
    const File file(file_path(segment), O_RDONLY);
    // Where a fold has just replaced it: again later.
    if (!file.is_open() || !sealing.look_through(file)) return false;
  }
  return sealing.run();
}

}  // namespace

SealResult seal_dead_slab(const char* directory, bool elsewhere) noexcept {
  char slab_path[kPathBytes];
  char log_path[kPathBytes];
  std::snprintf(slab_path, sizeof(slab_path), "%s/%s", directory, kSlabName);
  std::snprintf(log_path, sizeof(log_path), "%s/%s", directory, kLogName);
  if (access(slab_path, F_OK) != 0 &&
      !(elsewhere && slab_elsewhere(directory, slab_path) && access(slab_path, F_OK) == 0)) {
    return SealResult::kNoSlab;
  }
  const File slab(slab_path, O_RDONLY);
  SlabHeader header{};
  if (!slab.is_open() || slab.read_at(0, &header, sizeof(header)) != sizeof(header) ||
      header.magic != kSlabMagic || header.major != kFormatMajor ||
      header.slot_bytes != kSlotBytes || header.slot_count > kMaxSlots) {
    return SealResult::kLeft;
  }
  if (!certainly_gone({header.pid, header.start_ticks, header.place})) return SealResult::kAlive;
  const Pages pages;
  if (pages.get() == nullptr) return SealResult::kLeft;
  if (!seal_log(directory, log_path, slab, header, *pages.get())) return SealResult::kLeft;
  if (unlink(slab_path) != 0 && errno != ENOENT) return SealResult::kLeft;
  return SealResult::kSealed;
}

SealCounts seal_dead_slabs(const char* run_directory, bool elsewhere,
                           const std::atomic<uint32_t>* stop) noexcept {
  SealCounts counts;
  DIR* run = opendir(run_directory);
  if (run == nullptr) return counts;
  while (const dirent* entry = readdir(run)) {
    if (entry->d_name[0] == '.') continue;
    if (stop != nullptr && stop->load(std::memory_order_relaxed) != 0) {
      ++counts.left;
      break;
    }
    char process[kPathBytes];
    const int length =
        std::snprintf(process, sizeof(process), "%s/%s", run_directory, entry->d_name);
    if (length < 0 || static_cast<size_t>(length) + 16 > sizeof(process)) continue;
    switch (seal_dead_slab(process, elsewhere)) {
      case SealResult::kSealed:
        ++counts.sealed;
        break;
      case SealResult::kAlive:
        ++counts.alive;
        break;
      case SealResult::kLeft:
        ++counts.left;
        break;
      case SealResult::kNoSlab:
        break;
    }
  }
  closedir(run);
  return counts;
}

}  // namespace memscope
