#include "capture/slab.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "capture/clock.h"
#include "trace/process_identity.h"
#include "trace/record_table.h"

namespace memscope::capture {
namespace {

// Any slot may hold hot records; cold kinds are noted as they are written.
constexpr uint64_t kHotKinds = (uint64_t{1} << kFirstColdKind) - 2;

constexpr size_t kTouchedAtOnce = size_t{1} << 20;

// Faults pages in for writing. MADV_POPULATE_WRITE is Linux 5.14; storing into them does the same
// (nobody else writes here yet).
void touch_pages(char* from, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(from, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (size_t at = 0; at < bytes; at += 4096) {
    // An atomic "or 0" writes without changing what a lane may have written meanwhile.
    reinterpret_cast<std::atomic<uint64_t>*>(from + at)->fetch_or(0, std::memory_order_relaxed);
  }
}

}  // namespace

int Slab::create(const char* path, size_t bytes) {
  const size_t slots =
      std::clamp<size_t>((bytes - kSlabHeaderBytes) / kSlotBytes, 2, size_t{kMaxSlots});
  const size_t total = kSlabHeaderBytes + (slots + 1) * kSlotBytes;
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = posix_fallocate(fd, 0, static_cast<off_t>(total));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  close(fd);
  if (error != 0) {
    unlink(path);
    return error;
  }
  madvise(memory, total, MADV_DONTFORK);
  auto* base = static_cast<char*>(memory);
  bytes_ = total;
  count_ = static_cast<uint32_t>(slots);
  std::snprintf(path_, sizeof(path_), "%s", path);
  touch_pages(base, std::min(total, kTouchedAtOnce));
  const ProcessIdentity owner = own_identity();
  new (base) SlabHeader{.magic = kSlabMagic,
                        .major = kFormatMajor,
                        .minor = kFormatMinor,
                        .pid = owner.pid,
                        .slot_count = count_ + 1,
                        .slot_bytes = kSlotBytes,
                        .start_ticks = owner.start_ticks,
                        .place = owner.place};
  const Anchor anchor = take_anchor();
  new (base + kSlabHeaderBytes + slots * kSlotBytes)
      SlotHeader{.base_ticks = anchor.ticks, .mono_ns = anchor.mono_ns, .real_ns = anchor.real_ns};
  for (uint32_t i = 0; i < count_; ++i) {
    free_[i / 64].fetch_or(uint64_t{1} << i % 64, std::memory_order_release);
  }
  // Last: a thread that sees the slab mapped may take a slot at once.
  base_.store(base, std::memory_order_release);
  return 0;
}

void Slab::populate() {
  if (bytes_ > kTouchedAtOnce) {
    touch_pages(base_.load(std::memory_order_relaxed) + kTouchedAtOnce, bytes_ - kTouchedAtOnce);
  }
}

Slot Slab::slot(uint32_t index) const {
  char* at = base_.load(std::memory_order_relaxed) + kSlabHeaderBytes + size_t{index} * kSlotBytes;
  return {reinterpret_cast<SlotHeader*>(at), reinterpret_cast<uint64_t*>(at + sizeof(SlotHeader)),
          index};
}

Slot Slab::acquire(uint32_t lane, uint64_t lane_seq) noexcept {
  for (uint32_t word = 0; word * 64 < count_; ++word) {
    uint64_t bits = free_[word].load(std::memory_order_relaxed);
    while (bits != 0) {
      const uint64_t bit = bits & -bits;
      if (!free_[word].compare_exchange_weak(bits, bits & ~bit, std::memory_order_acquire)) {
        continue;
      }
      const auto index = word * 64 + static_cast<uint32_t>(__builtin_ctzll(bit));
      const Slot taken = slot(index);
      // Emptied before the header names its new owner: a kill in between shows an empty slot.
      __atomic_store_n(taken.records, 0, __ATOMIC_RELEASE);
      const Anchor anchor = take_anchor();
      taken.header->lane = lane;
      taken.header->lane_seq = lane_seq;
      taken.header->base_ticks = anchor.ticks;
      taken.header->mono_ns = anchor.mono_ns;
      taken.header->real_ns = anchor.real_ns;
      taken.header->kinds.store(kHotKinds, std::memory_order_relaxed);
      drained_[index] = {0, anchor.ticks};
      taken.header->state.store(static_cast<uint32_t>(SlotState::kOwned),
                                std::memory_order_release);
      return taken;
    }
  }
  return {};
}

void Slab::finish(uint32_t index) noexcept {
  slot(index).header->state.store(static_cast<uint32_t>(SlotState::kFull),
                                  std::memory_order_release);
  full_[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_release);
}

uint32_t Slab::next_full(uint32_t from) const noexcept {
  for (uint32_t word = from / 64; word * 64 < count_; ++word) {
    uint64_t bits = full_[word].load(std::memory_order_acquire);
    if (word == from / 64) bits &= ~uint64_t{0} << from % 64;
    if (bits != 0) return word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
  }
  return kMaxSlots;
}

void Slab::release(uint32_t index) noexcept {
  full_[index / 64].fetch_and(~(uint64_t{1} << index % 64), std::memory_order_relaxed);
  slot(index).header->state.store(static_cast<uint32_t>(SlotState::kFree),
                                  std::memory_order_release);
  free_[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_release);
}

void Slab::destroy(bool keep_file) {
  if (!mapped()) return;
  if (!keep_file) unlink(path_);
  munmap(base_.load(std::memory_order_relaxed), bytes_);
  forget_after_fork();
}

void Slab::forget_after_fork() {
  base_.store(nullptr, std::memory_order_relaxed);
  count_ = 0;
  for (auto& word : free_) word.store(0, std::memory_order_relaxed);
  for (auto& word : full_) word.store(0, std::memory_order_relaxed);
}

}  // namespace memscope::capture
