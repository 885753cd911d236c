// How to get from a frame to its caller: what of a function's call frame information is needed for
// that, in eight bytes.
//
//   CFA (the caller's stack pointer) = sp + offset | fp + offset | *(fp + offset)
//   caller's fp = unchanged | *(CFA + offset) | *(fp + offset)
//   caller's pc = *(CFA + offset) | the link register
//
// fp is rbp or x29. *(fp + offset) is what compilers write where they align the stack (GCC's
// "dynamic realign argument pointer"). Everything else is kStop: the walk ends there and says so.
#pragma once

#include <cstdint>

namespace memscope::capture {

struct UnwindRule {
  enum class Cfa : uint8_t {
    kStop,     // no rule, or none that fits here
    kEnd,      // the outermost frame: its return address is undefined
    kSp,       // sp + offset
    kFp,       // fp + offset
    kFpValue,  // *(fp + offset)
    kSignal,   // the frame the kernel made for a signal handler: all registers are in it
  };
  enum class Fp : uint8_t { kSame, kAtCfa, kAtFp };

  Cfa cfa = Cfa::kStop;
  Fp fp = Fp::kSame;
  bool return_in_register = false;                           // aarch64: x30 still holds it
  int32_t cfa_offset = 0, fp_offset = 0, return_offset = 0;  // multiples of 8

  friend bool operator==(const UnwindRule&, const UnwindRule&) = default;
};

namespace unwind_detail {
inline constexpr int kCfaBits = 26, kSmallBits = 16;

constexpr bool fits(int32_t offset, int bits) {
  return offset % 8 == 0 && offset / 8 >= -(1 << (bits - 1)) && offset / 8 < 1 << (bits - 1);
}
constexpr uint64_t field(int32_t offset, int bits, int shift) {
  return (static_cast<uint64_t>(int64_t{offset} / 8) & ((uint64_t{1} << bits) - 1)) << shift;
}
[[gnu::always_inline]] constexpr int64_t signed_field(uint64_t word, int bits, int shift) {
  return (static_cast<int64_t>(word << (64 - shift - bits)) >> (64 - bits)) * 8;
}
}  // namespace unwind_detail

//  63    48 47     32 31      6  5   4..3  2..0
//  return   fp        cfa        lr  fp    cfa      offsets in units of 8
constexpr uint64_t pack_rule(const UnwindRule& rule) {
  using namespace unwind_detail;  // NOLINT(google-build-using-namespace)
  if (!fits(rule.cfa_offset, kCfaBits) || !fits(rule.fp_offset, kSmallBits) ||
      !fits(rule.return_offset, kSmallBits)) {
    return 0;  // kStop
  }
  return field(rule.return_offset, kSmallBits, 48) | field(rule.fp_offset, kSmallBits, 32) |
         field(rule.cfa_offset, kCfaBits, 6) | uint64_t{rule.return_in_register} << 5 |
         static_cast<uint64_t>(rule.fp) << 3 | static_cast<uint64_t>(rule.cfa);
}

// Reads the fields of a packed rule one by one. HOT PATH.
struct PackedRule {
  uint64_t word = 0;
  UnwindRule::Cfa cfa() const { return static_cast<UnwindRule::Cfa>(word & 7); }
  UnwindRule::Fp fp() const { return static_cast<UnwindRule::Fp>(word >> 3 & 3); }
  bool return_in_register() const { return (word >> 5 & 1) != 0; }
  int64_t cfa_offset() const {
    return unwind_detail::signed_field(word, unwind_detail::kCfaBits, 6);
  }
  int64_t fp_offset() const {
    return unwind_detail::signed_field(word, unwind_detail::kSmallBits, 32);
  }
  int64_t return_offset() const {
    return unwind_detail::signed_field(word, unwind_detail::kSmallBits, 48);
  }
};

}  // namespace memscope::capture
