// Rules already found, by address: what makes a walk cost a look-up a frame. Shared by all threads.
// HOT PATH: find().
//
//   place = hash(pc), four places are looked at:
//     { check = key ^ mix(rule, module), rule, module }      key = pc | epoch << 48
//
// Guarantees
//  * No lock and no wait: an entry that another thread is just writing fails its check and is not
//    found. Its words are stored and loaded one by one, in any order.
//  * forget_all() starts a new epoch: no entry made from what was known before it is found again,
//    even one that a slow thread inserts later.
//  * Memory is given once and never grows: a full neighbourhood loses an entry.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/unwind_rule.h"

namespace memscope::capture {

class UnwindCache {
 public:
  struct Entry {
    uint64_t check, rule, module;
  };
  static constexpr size_t kPlaces = 1 << 14;
  static constexpr size_t kBytes = kPlaces * sizeof(Entry);

  // Zeroed memory of kBytes, kept for good.
  void attach(void* memory) { entries_ = static_cast<Entry*>(memory); }
  bool attached() const { return entries_ != nullptr; }

  // To be taken before looking up what insert() is then given.
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

  // HOT PATH. `pc` is at most 48 bits wide.
  [[gnu::always_inline]] bool find(uint64_t pc, uint64_t epoch, PackedRule* rule,
                                   uint64_t* module) const {
    const uint64_t key = pc | epoch << 48;
    Entry* first = entries_ + place_of(pc);
    for (size_t i = 0; i < kWays; ++i) {
      const uint64_t check = load(first[i].check);
      const uint64_t word = load(first[i].rule), owner = load(first[i].module);
      if ((check ^ mix(word, owner)) != key) continue;
      rule->word = word;
      *module = owner;
      return true;
    }
    return false;
  }

  void insert(uint64_t pc, uint64_t epoch, uint64_t rule, uint64_t module) {
    Entry* first = entries_ + place_of(pc);
    Entry* into = nullptr;
    for (size_t i = 0; i < kWays && into == nullptr; ++i) {
      const uint64_t key = load(first[i].check) ^ mix(load(first[i].rule), load(first[i].module));
      if (key == 0 || key >> 48 != (epoch & 0xffff)) into = first + i;
    }
    if (into == nullptr) into = first + pc % kWays;
    store(into->check, (pc | epoch << 48) ^ mix(rule, module));
    store(into->rule, rule);
    store(into->module, module);
  }

  // Callers that meet begin one epoch together: each has published what it knew before.
  void forget_all() {
    const uint64_t next = epoch_.load(std::memory_order_relaxed) + 1;
    // The 16 bits in the keys come round: what still carries them must go.
    if ((next & 0xffff) == 0 && attached()) {
      for (size_t i = 0; i < kPlaces; ++i) store(entries_[i].check, 0);
    }
    epoch_.store(next, std::memory_order_release);
  }

 private:
  static constexpr size_t kWays = 4;

  static size_t place_of(uint64_t pc) {
    return (pc * 0x9E3779B97F4A7C15u) >> 50 & (kPlaces - kWays);
  }
  [[gnu::always_inline]] static uint64_t mix(uint64_t rule, uint64_t module) {
    return (rule ^ module << 32 ^ module >> 32) * 0xD6E8FEB86659FD93u;
  }
  static uint64_t load(const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
  static void store(uint64_t& word, uint64_t value) {
    __atomic_store_n(&word, value, __ATOMIC_RELAXED);
  }

  Entry* entries_ = nullptr;
  std::atomic<uint64_t> epoch_{1};
};

}  // namespace memscope::capture
