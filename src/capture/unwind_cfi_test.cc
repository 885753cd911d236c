#include "capture/unwind_cfi.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "capture/small_libraries.h"
#include "capture/unwind_fixture.h"

namespace memscope::capture {
namespace {

TEST(UnwindRule, IsPackedAndReadBack) {
  const UnwindRule rules[] = {
      {.cfa = UnwindRule::Cfa::kSp, .cfa_offset = 8, .return_offset = -8},
      {.cfa = UnwindRule::Cfa::kFp,
       .fp = UnwindRule::Fp::kAtCfa,
       .cfa_offset = 16,
       .fp_offset = -16,
       .return_offset = -8},
      {.cfa = UnwindRule::Cfa::kFpValue,
       .fp = UnwindRule::Fp::kAtFp,
       .return_in_register = true,
       .cfa_offset = -8,
       .fp_offset = 0x3fff8,
       .return_offset = -0x40000},
      {.cfa = UnwindRule::Cfa::kSp, .cfa_offset = 0xffffff8, .return_offset = -8},
  };
  for (const UnwindRule& rule : rules) {
    const PackedRule packed{pack_rule(rule)};
    EXPECT_EQ(packed.cfa(), rule.cfa);
    EXPECT_EQ(packed.fp(), rule.fp);
    EXPECT_EQ(packed.return_in_register(), rule.return_in_register);
    EXPECT_EQ(packed.cfa_offset(), rule.cfa_offset);
    EXPECT_EQ(packed.fp_offset(), rule.fp_offset);
    EXPECT_EQ(packed.return_offset(), rule.return_offset);
  }
  // A frame that is too large, or at an odd place, has no rule rather than a wrong one.
  EXPECT_EQ(pack_rule({.cfa = UnwindRule::Cfa::kSp, .cfa_offset = 0x10000000}), 0u);
  EXPECT_EQ(pack_rule({.cfa = UnwindRule::Cfa::kSp, .cfa_offset = 12}), 0u);
}

TEST(UnwindCache, FindsWhatWasInsertedUntilAllIsForgotten) {
  auto memory = std::make_unique<uint64_t[]>(UnwindCache::kBytes / 8);
  UnwindCache cache;
  cache.attach(memory.get());
  PackedRule rule;
  uint64_t module = 0;
  EXPECT_FALSE(cache.find(0x1000, cache.epoch(), &rule, &module));
  const uint64_t before = cache.epoch();
  cache.insert(0x1000, before, 42, 7);
  ASSERT_TRUE(cache.find(0x1000, before, &rule, &module));
  EXPECT_EQ(rule.word, 42u);
  EXPECT_EQ(module, 7u);
  cache.forget_all();
  EXPECT_FALSE(cache.find(0x1000, cache.epoch(), &rule, &module));
  cache.insert(0x1000, before, 42, 7);  // by a thread that looked before and was slow
  EXPECT_FALSE(cache.find(0x1000, cache.epoch(), &rule, &module));
  // The number of an epoch comes round after 65,536 of them; what it named then is gone.
  for (int i = 0; i < 1 << 16; ++i) cache.forget_all();
  EXPECT_EQ(cache.epoch() & 0xffff, (before + 1) & 0xffff);
  EXPECT_FALSE(cache.find(0x1000, before, &rule, &module));
}

TEST(UnwindCache, AFullNeighbourhoodLosesEntriesAndNeverMixesThem) {
  auto memory = std::make_unique<uint64_t[]>(UnwindCache::kBytes / 8);
  UnwindCache cache;
  cache.attach(memory.get());
  const uint64_t epoch = cache.epoch();
  for (uint64_t pc = 1; pc < 100'000; ++pc) cache.insert(pc, epoch, pc * 3, pc * 5);
  size_t found = 0;
  for (uint64_t pc = 1; pc < 100'000; ++pc) {
    PackedRule rule;
    uint64_t module = 0;
    if (!cache.find(pc, epoch, &rule, &module)) continue;
    ++found;
    EXPECT_EQ(rule.word, pc * 3);
    EXPECT_EQ(module, pc * 5);
  }
  EXPECT_GT(found, UnwindCache::kPlaces / 2);
}

// Hand-written information: the shortest that says something. All of it in one array, so that the
// offsets between the parts are plain numbers:
//   0  .eh_frame_hdr: version, encodings, -> 24; one function, { 2048 -> 48 }   (from the header)
//   24 CIE  48 FDE
class WrittenCfi {
 public:
  explicit WrittenCfi(const std::vector<uint8_t>& instructions) : bytes_(4096) {
    put({1, 0x1b, 0x03, 0x3b});
    put32(24 - 4);  // pc-relative
    put32(1);
    put32(kFunction);
    put32(48);
    at_ = 24;
#if defined(__x86_64__)
    // version 1, "zR", code 1, data -8, return register 16; pc-relative sdata4; CFA = rsp + 8, the
    // return address at CFA - 8
    put32(20);
    put32(0);
    put({1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0});
#else
    // code 4, data -8, return register 30; CFA = sp
    put32(20);
    put32(0);
    put({1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0, 0, 0, 0, 0});
#endif
    at_ = 48;
    put32(static_cast<uint32_t>(4 + 8 + 1 + instructions.size()));
    put32(52 - 24);  // back to the CIE
    put32(kFunction - 56);
    put32(kSize);
    put({0});
    put(instructions);
  }

  static constexpr uint32_t kFunction = 2048, kSize = 256;
  UnwindRule rule_at(uint64_t offset) const {
    return find_unwind_rule({bytes_.data(), bytes_.data(), bytes_.data() + bytes_.size()},
                            reinterpret_cast<uint64_t>(bytes_.data()) + kFunction + offset);
  }

 private:
  void put(const std::vector<uint8_t>& some) {
    std::copy(some.begin(), some.end(), bytes_.begin() + static_cast<long>(at_));
    at_ += some.size();
  }
  void put32(uint32_t value) {
    std::memcpy(bytes_.data() + at_, &value, sizeof value);
    at_ += sizeof value;
  }
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
};

#if defined(__x86_64__)
TEST(UnwindCfi, TheRowInForceIsTheOneThatCounts) {
  // push rbp (1 byte); mov rsp, rbp (3); ...; at 0x40: pop rbp
  const WrittenCfi written({0x41, 0x0e, 16, 0x86, 2,         // advance 1; CFA + 16; rbp at CFA - 16
                            0x43, 0x0d, 6,                   // advance 3; CFA by rbp
                            0x02, 0x3c, 0x0c, 7, 8, 0xc6});  // advance 60; rsp + 8; rbp restored
  const UnwindRule entry{.cfa = UnwindRule::Cfa::kSp, .cfa_offset = 8, .return_offset = -8};
  UnwindRule pushed{.cfa = UnwindRule::Cfa::kSp,
                    .fp = UnwindRule::Fp::kAtCfa,
                    .cfa_offset = 16,
                    .fp_offset = -16,
                    .return_offset = -8};
  EXPECT_EQ(written.rule_at(0), entry);
  EXPECT_EQ(written.rule_at(1), pushed);
  pushed.cfa = UnwindRule::Cfa::kFp;
  EXPECT_EQ(written.rule_at(4), pushed);
  EXPECT_EQ(written.rule_at(63), pushed);
  EXPECT_EQ(written.rule_at(64), entry);
  EXPECT_EQ(written.rule_at(255), entry);
  EXPECT_EQ(written.rule_at(256), UnwindRule{}) << "past the function's end";
}

TEST(UnwindCfi, ARememberedRowComesBack) {
  const WrittenCfi written({0x44, 0x0e, 32, 0x0a, 0x44, 0x0e, 8, 0x44, 0x0b});
  EXPECT_EQ(written.rule_at(4).cfa_offset, 32);
  EXPECT_EQ(written.rule_at(8).cfa_offset, 8);
  EXPECT_EQ(written.rule_at(12).cfa_offset, 32);
}

TEST(UnwindCfi, AnAlignedStackIsKnownByItsExpressions) {
  // rbp at *(rbp + 0); CFA = *(rbp - 8)
  const WrittenCfi written({0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 6});
  EXPECT_EQ(written.rule_at(0), (UnwindRule{.cfa = UnwindRule::Cfa::kFpValue,
                                            .fp = UnwindRule::Fp::kAtFp,
                                            .cfa_offset = -8,
                                            .return_offset = -8}));
}

TEST(UnwindCfi, WhatIsUnusualHasNoRule) {
  for (const std::vector<uint8_t>& instructions : std::vector<std::vector<uint8_t>>{
           {0x0c, 10, 0},             // CFA by r10
           {0x0f, 3, 0x77, 8, 0x22},  // CFA by another expression
           {0x16, 16, 2, 0x77, 0},    // the return address is computed
           {0x09, 16, 3},             // or in a register
           {0x0b},                    // restored what was never remembered
           {0x3f},                    // no such instruction
           {0x0e},                    // cut off
           {0x0e, 12},                // at an odd place
       }) {
    EXPECT_EQ(WrittenCfi(instructions).rule_at(4), UnwindRule{}) << int{instructions[0]};
  }
}

TEST(UnwindCfi, AnUndefinedReturnAddressIsTheEnd) {
  EXPECT_EQ(WrittenCfi({0x07, 16}).rule_at(0).cfa, UnwindRule::Cfa::kEnd);
}
#else
TEST(UnwindCfi, ALeafHasItsReturnAddressInTheRegister) {
  // stp x29, x30, [sp, -32]!: advance 1 instruction; CFA + 32; x29 at CFA - 32, x30 at CFA - 24
  const WrittenCfi written({0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3});
  EXPECT_EQ(written.rule_at(0),
            (UnwindRule{.cfa = UnwindRule::Cfa::kSp, .return_in_register = true}));
  EXPECT_EQ(written.rule_at(4), (UnwindRule{.cfa = UnwindRule::Cfa::kSp,
                                            .fp = UnwindRule::Fp::kAtCfa,
                                            .cfa_offset = 32,
                                            .fp_offset = -32,
                                            .return_offset = -24}));
}
#endif

// Bytes of a real library, damaged at random: a rule or none, and nothing read outside of them (the
// copy ends where its memory does, so that the sanitizer sees it).
TEST(UnwindCfi, SurvivesDamage) {
  UnwindTables tables;
  Module libc;
  ASSERT_TRUE(tables.modules.find(
      reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")), &libc));
  const size_t size = static_cast<size_t>(libc.cfi.readable_end - libc.cfi.readable_begin);
  const size_t header = static_cast<size_t>(libc.cfi.header - libc.cfi.readable_begin);
  std::vector<uint8_t> copy(libc.cfi.readable_begin, libc.cfi.readable_end);
  copy.shrink_to_fit();
  const uint64_t moved =
      reinterpret_cast<uint64_t>(copy.data()) - reinterpret_cast<uint64_t>(libc.cfi.readable_begin);
  const auto pc_of = [&](uint64_t random) {
    return libc.begin + random % (libc.end - libc.begin) + moved;
  };
  const CfiSection section{copy.data() + header, copy.data(), copy.data() + size};
  uint64_t seed = 7;
  const auto random = [&seed] {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 20;
  };
  size_t rules = 0;
  for (int i = 0; i < 5000; ++i) {
    if (find_unwind_rule(section, pc_of(random())).cfa != UnwindRule::Cfa::kStop) ++rules;
  }
  EXPECT_GT(rules, 1000u) << "the copy is as good as the original";
  for (int i = 0; i < 20'000; ++i) {
    // The table, then the frames behind it.
    copy[header + 12 + random() % (size - header - 12)] = static_cast<uint8_t>(random());
    find_unwind_rule(section, pc_of(random()));
  }
}

}  // namespace
}  // namespace memscope::capture
