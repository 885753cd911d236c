#include "capture/unwind_cfi.h"

#include <cstring>

namespace memscope::capture {
namespace {

// DWARF's numbers of the registers that matter.
#if defined(__x86_64__)
constexpr uint64_t kFpRegister = 6, kSpRegister = 7, kReturnRegister = 16;
#elif defined(__aarch64__)
constexpr uint64_t kFpRegister = 29, kSpRegister = 31, kReturnRegister = 30;
#endif

// DW_EH_PE_*: how a pointer is written.
constexpr uint8_t kOmit = 0xff, kAbsolute = 0x00, kUdata2 = 0x02, kUdata4 = 0x03, kUdata8 = 0x04,
                  kSdata2 = 0x0a, kSdata4 = 0x0b, kSdata8 = 0x0c, kPcRelative = 0x10;
constexpr uint8_t kDataRelativeSdata4 = 0x3b;

// DW_OP_*.
constexpr uint8_t kOpDeref = 0x06, kOpRegister0 = 0x70;

// Bytes that may end anywhere: past the end everything reads as 0 and ok() is false.
class Bytes {
 public:
  Bytes(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

  bool ok() const { return ok_; }
  bool more() const { return ok_ && at_ < end_; }
  const uint8_t* at() const { return at_; }

  template <typename T>
  T fixed() {
    T value{};
    if (!has(sizeof(T))) return value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint8_t byte() { return fixed<uint8_t>(); }
  uint64_t unsigned_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t part = byte();
      if (shift < 64) value |= uint64_t{part & 0x7fu} << shift;
      if ((part & 0x80) == 0) return value;
    }
  }
  int64_t signed_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const uint8_t part = byte();
      if (shift < 64) value |= uint64_t{part & 0x7fu} << shift;
      shift += 7;
      if ((part & 0x80) != 0) continue;
      if (shift < 64 && (part & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  // The bytes of a block that says its length.
  Bytes block(uint64_t length) {
    if (!has(length)) return {at_, at_};
    const uint8_t* begin = at_;
    at_ += length;
    return {begin, at_};
  }
  // An encoded pointer, of those encodings that compilers use in .eh_frame.
  uint64_t pointer(uint8_t encoding) {
    const auto here = reinterpret_cast<uint64_t>(at_);
    uint64_t value = 0;
    switch (encoding & 0x0f) {
      case kAbsolute:
      case kUdata8:
      case kSdata8:
        value = fixed<uint64_t>();
        break;
      case kUdata4:
        value = fixed<uint32_t>();
        break;
      case kSdata4:
        value = static_cast<uint64_t>(int64_t{fixed<int32_t>()});
        break;
      case kUdata2:
        value = fixed<uint16_t>();
        break;
      case kSdata2:
        value = static_cast<uint64_t>(int64_t{fixed<int16_t>()});
        break;
      default:
        ok_ = false;
    }
    if ((encoding & 0x70) == kPcRelative) return value + here;
    if ((encoding & 0x70) != 0) ok_ = false;
    return value;
  }
  void fail() { ok_ = false; }

 private:
  bool has(uint64_t bytes) {
    if (ok_ && bytes <= static_cast<uint64_t>(end_ - at_)) return true;
    ok_ = false;
    at_ = end_;
    return false;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  bool ok_ = true;
};

// Wraps where damaged input makes it too large.
int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Where a register of the caller's is.
struct Place {
  enum class Kind : uint8_t { kSame, kAtCfa, kAtFp, kUndefined, kOther } kind = Kind::kSame;
  int64_t offset = 0;
};

struct Row {
  enum class Cfa : uint8_t { kNone, kRegister, kFpValue, kOther } cfa = Cfa::kNone;
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  Place fp, return_address;

  Place* place(uint64_t reg) {
    if (reg == kFpRegister) return &fp;
    if (reg == kReturnRegister) return &return_address;
    return nullptr;
  }
};

struct Entry {  // a CIE
  uint64_t code_align = 1;
  int64_t data_align = 1;
  uint8_t pointer_encoding = kAbsolute;
  bool signal_frame = false, has_augmentation = false;
  Bytes instructions{nullptr, nullptr};
};

// "*(fp + offset)" or, without the dereference, "fp + offset".
bool read_fp_expression(Bytes expression, bool dereferenced, int64_t* offset) {
  if (expression.byte() != kOpRegister0 + kFpRegister) return false;
  *offset = expression.signed_leb();
  if (dereferenced && expression.byte() != kOpDeref) return false;
  return expression.ok() && !expression.more();
}

// Runs the instructions of a CIE or an FDE up to the row that holds at `pc`.
class RowMachine {
 public:
  RowMachine(const Entry& entry, uint64_t location, uint64_t pc)
      : entry_(entry), location_(location), pc_(pc) {}

  Row row;
  void keep_as_initial() { initial_ = row; }

  // False where something is not understood.
  bool run(Bytes code) {
    while (code.more()) {
      const uint8_t op = code.byte();
      const bool good = (op >> 6) != 0 ? primary(op >> 6, op & 0x3f, code) : extended(op, code);
      if (!good || !code.ok()) return false;
      if (location_ > pc_) return true;
    }
    return code.ok();
  }

 private:
  static constexpr size_t kDepth = 8;

  void advance(uint64_t units) { location_ += units * entry_.code_align; }
  void at_cfa(uint64_t reg, int64_t factored) {
    if (Place* place = row.place(reg)) {
      *place = {Place::Kind::kAtCfa, product(factored, entry_.data_align)};
    }
  }
  void set(uint64_t reg, Place::Kind kind) {
    if (Place* place = row.place(reg)) *place = {kind, 0};
  }
  void restore(uint64_t reg) {
    if (Place* place = row.place(reg)) *place = *initial_.place(reg);
  }
  void cfa(uint64_t reg, int64_t offset) {
    row.cfa = Row::Cfa::kRegister;
    row.cfa_register = reg;
    row.cfa_offset = offset;
  }

  bool primary(unsigned op, unsigned operand, Bytes& code) {
    if (op == 1) {  // advance_loc
      advance(operand);
    } else if (op == 2) {  // offset
      at_cfa(operand, static_cast<int64_t>(code.unsigned_leb()));
    } else {
      restore(operand);
    }
    return true;
  }

  bool extended(uint8_t op, Bytes& code) {
    switch (op) {
      case 0x00:  // nop
        return true;
      case 0x01:  // set_loc
        location_ = code.pointer(entry_.pointer_encoding);
        return true;
      case 0x02:  // advance_loc1, 2, 4
        advance(code.byte());
        return true;
      case 0x03:
        advance(code.fixed<uint16_t>());
        return true;
      case 0x04:
        advance(code.fixed<uint32_t>());
        return true;
      case 0x0a:  // remember_state
        if (kept_ == kDepth) return false;
        stack_[kept_++] = row;
        return true;
      case 0x0b:  // restore_state
        if (kept_ == 0) return false;
        row = stack_[--kept_];
        return true;
      case 0x2d:  // AArch64: negate_ra_state
        return true;
      case 0x2e:  // GNU_args_size
        code.unsigned_leb();
        return true;
      default:
        return op >= 0x0c && op <= 0x0f   ? cfa_rule(op, code)
               : op == 0x12 || op == 0x13 ? cfa_rule(op, code)
                                          : register_rule(op, code);
    }
  }

  bool cfa_rule(uint8_t op, Bytes& code) {
    switch (op) {
      case 0x0c: {  // def_cfa
        const uint64_t reg = code.unsigned_leb();
        cfa(reg, static_cast<int64_t>(code.unsigned_leb()));
        return true;
      }
      case 0x0d:  // def_cfa_register
        cfa(code.unsigned_leb(), row.cfa_offset);
        return true;
      case 0x0e:  // def_cfa_offset
        row.cfa_offset = static_cast<int64_t>(code.unsigned_leb());
        return true;
      case 0x0f: {  // def_cfa_expression
        const Bytes expression = code.block(code.unsigned_leb());
        row.cfa = read_fp_expression(expression, true, &row.cfa_offset) ? Row::Cfa::kFpValue
                                                                        : Row::Cfa::kOther;
        return true;
      }
      case 0x12: {  // def_cfa_sf
        const uint64_t reg = code.unsigned_leb();
        cfa(reg, product(code.signed_leb(), entry_.data_align));
        return true;
      }
      default:  // 0x13, def_cfa_offset_sf
        row.cfa_offset = product(code.signed_leb(), entry_.data_align);
        return true;
    }
  }

  bool register_rule(uint8_t op, Bytes& code) {
    const uint64_t reg = code.unsigned_leb();
    switch (op) {
      case 0x05:  // offset_extended
        at_cfa(reg, static_cast<int64_t>(code.unsigned_leb()));
        return true;
      case 0x06:  // restore_extended
        restore(reg);
        return true;
      case 0x07:  // undefined
        set(reg, Place::Kind::kUndefined);
        return true;
      case 0x08:  // same_value
        set(reg, Place::Kind::kSame);
        return true;
      case 0x09:  // register
        code.unsigned_leb();
        set(reg, Place::Kind::kOther);
        return true;
      case 0x10: {  // expression: the address where it is
        const Bytes expression = code.block(code.unsigned_leb());
        int64_t offset = 0;
        if (Place* place = row.place(reg)) {
          *place = read_fp_expression(expression, false, &offset)
                       ? Place{Place::Kind::kAtFp, offset}
                       : Place{Place::Kind::kOther, 0};
        }
        return true;
      }
      case 0x11:  // offset_extended_sf
        at_cfa(reg, code.signed_leb());
        return true;
      case 0x14:  // val_offset, val_offset_sf: the value itself
      case 0x15:
        code.unsigned_leb();
        set(reg, Place::Kind::kOther);
        return true;
      case 0x16:  // val_expression
        code.block(code.unsigned_leb());
        set(reg, Place::Kind::kOther);
        return true;
      case 0x2f:  // GNU_negative_offset_extended
        at_cfa(reg, static_cast<int64_t>(-code.unsigned_leb()));
        return true;
      default:
        return false;
    }
  }

  const Entry& entry_;
  uint64_t location_, pc_;
  Row initial_, stack_[kDepth];
  size_t kept_ = 0;
};

// A CIE's or FDE's own bytes, its length word left behind; empty where it does not fit.
Bytes record_at(const CfiSection& section, const uint8_t* at) {
  if (at < section.readable_begin || at >= section.readable_end) return {nullptr, nullptr};
  Bytes bytes(at, section.readable_end);
  const auto length = bytes.fixed<uint32_t>();
  if (length == UINT32_MAX) bytes.fail();  // the 64-bit form: nobody writes it
  return bytes.ok() ? bytes.block(length) : Bytes(nullptr, nullptr);
}

bool read_augmentation(const char* text, size_t length, Bytes data, Entry* entry) {
  if (length == 0) return true;
  if (text[0] != 'z') return false;
  entry->has_augmentation = true;
  for (size_t i = 1; i < length; ++i) {
    switch (text[i]) {
      case 'R':
        entry->pointer_encoding = data.byte();
        break;
      case 'P':
        data.pointer(data.byte() & 0x0f);
        break;
      case 'L':
        data.byte();
        break;
      case 'S':
        entry->signal_frame = true;
        break;
      case 'B':
        break;
      default:
        return false;
    }
  }
  return data.ok();
}

bool read_entry(const CfiSection& section, const uint8_t* at, Entry* entry) {
  Bytes bytes = record_at(section, at);
  if (!bytes.more() || bytes.fixed<uint32_t>() != 0) return false;  // its id
  const uint8_t version = bytes.byte();
  if (version != 1 && version != 3) return false;
  const auto* augmentation = reinterpret_cast<const char*>(bytes.at());
  size_t length = 0;
  while (bytes.byte() != 0) ++length;
  if (!bytes.ok()) return false;
  entry->code_align = bytes.unsigned_leb();
  entry->data_align = bytes.signed_leb();
  const uint64_t return_register = version == 1 ? bytes.byte() : bytes.unsigned_leb();
  if (return_register != kReturnRegister) return false;
  const bool has_data = length != 0 && augmentation[0] == 'z';
  const Bytes data = has_data ? bytes.block(bytes.unsigned_leb()) : Bytes(nullptr, nullptr);
  if (!bytes.ok() || !read_augmentation(augmentation, length, data, entry)) return false;
  entry->instructions = bytes;
  return true;
}

// The FDE of the last function that begins at or before `pc`, by the sorted table.
const uint8_t* find_fde(const CfiSection& section, uint64_t pc) {
  Bytes header(section.header, section.readable_end);
  const uint8_t version = header.byte(), frame_encoding = header.byte(),
                count_encoding = header.byte(), table_encoding = header.byte();
  if (version != 1 || table_encoding != kDataRelativeSdata4 || count_encoding != kUdata4 ||
      frame_encoding == kOmit) {
    return nullptr;
  }
  header.pointer(frame_encoding);
  const uint64_t count = header.fixed<uint32_t>();
  struct TableEntry {
    int32_t function, fde;  // from the header's beginning
  };
  const uint8_t* table = header.at();
  if (!header.ok() ||
      count > static_cast<uint64_t>(section.readable_end - table) / sizeof(TableEntry)) {
    return nullptr;
  }
  const auto entry_at = [table](uint64_t index) {
    TableEntry entry;
    std::memcpy(&entry, table + index * sizeof entry, sizeof entry);
    return entry;
  };
  const auto wanted = static_cast<int64_t>(pc - reinterpret_cast<uint64_t>(section.header));
  uint64_t low = 0, high = count;  // all before low begin at or before pc, all from high after it
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (entry_at(middle).function <= wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return nullptr;
  const int64_t offset = entry_at(low - 1).fde;
  const int64_t before = section.header - section.readable_begin;
  const int64_t after = section.readable_end - section.header;
  return offset < -before || offset >= after ? nullptr : section.header + offset;
}

bool offset_of(const Place& place, int32_t* offset) {
  *offset = static_cast<int32_t>(place.offset);
  return *offset == place.offset;
}

UnwindRule rule_of(const Row& row, bool signal_frame) {
  UnwindRule rule;
  if (signal_frame) return {.cfa = UnwindRule::Cfa::kSignal};
  if (row.return_address.kind == Place::Kind::kUndefined) return {.cfa = UnwindRule::Cfa::kEnd};
  if (row.cfa == Row::Cfa::kFpValue) {
    rule.cfa = UnwindRule::Cfa::kFpValue;
  } else if (row.cfa == Row::Cfa::kRegister && row.cfa_register == kSpRegister) {
    rule.cfa = UnwindRule::Cfa::kSp;
  } else if (row.cfa == Row::Cfa::kRegister && row.cfa_register == kFpRegister) {
    rule.cfa = UnwindRule::Cfa::kFp;
  } else {
    return {};
  }
  if (!offset_of({Place::Kind::kAtCfa, row.cfa_offset}, &rule.cfa_offset)) return {};
  switch (row.fp.kind) {
    case Place::Kind::kSame:
    case Place::Kind::kUndefined:  // of no use to the caller either
      break;
    case Place::Kind::kAtCfa:
      rule.fp = UnwindRule::Fp::kAtCfa;
      break;
    case Place::Kind::kAtFp:
      rule.fp = UnwindRule::Fp::kAtFp;
      break;
    case Place::Kind::kOther:
      return {};
  }
  if (!offset_of(row.fp, &rule.fp_offset)) return {};
  if (row.return_address.kind == Place::Kind::kAtCfa) {
    if (!offset_of(row.return_address, &rule.return_offset)) return {};
  } else if (row.return_address.kind == Place::Kind::kSame && kReturnRegister == 30) {
    rule.return_in_register = true;
  } else {
    return {};
  }
  // What the packed form cannot hold is no rule either.
  return pack_rule(rule) == 0 ? UnwindRule{} : rule;
}

// The FDE of the function that `pc` is in, its CIE, and where the function lies; what is left of
// `fde` are its instructions.
struct Description {
  Entry entry;
  uint64_t begin = 0, end = 0;
  Bytes instructions{nullptr, nullptr};
};
bool describe(const CfiSection& section, uint64_t pc, Description* out) {
  if (section.header == nullptr) return false;
  const uint8_t* at = find_fde(section, pc);
  if (at == nullptr) return false;
  Bytes fde = record_at(section, at);
  const uint8_t* back = fde.at();  // the CIE is so many bytes before this word
  const auto distance = fde.fixed<uint32_t>();
  if (!fde.ok() || distance == 0 || distance > back - section.readable_begin) return false;
  if (!read_entry(section, back - distance, &out->entry)) return false;
  out->begin = fde.pointer(out->entry.pointer_encoding);
  const uint64_t size = fde.pointer(out->entry.pointer_encoding & 0x0f);
  out->end = out->begin + size;
  if (out->entry.has_augmentation) fde.block(fde.unsigned_leb());
  out->instructions = fde;
  return fde.ok() && pc - out->begin < size;
}

}  // namespace

UnwindRule find_unwind_rule(const CfiSection& section, uint64_t pc) noexcept {
  Description function;
  if (!describe(section, pc, &function)) return {};
  RowMachine start(function.entry, 0, UINT64_MAX);
  if (!start.run(function.entry.instructions)) return {};
  RowMachine body(function.entry, function.begin, pc);
  body.row = start.row;
  body.keep_as_initial();
  if (!body.run(function.instructions)) return {};
  return rule_of(body.row, function.entry.signal_frame);
}

bool find_function(const CfiSection& section, uint64_t pc, uint64_t* begin,
                   uint64_t* end) noexcept {
  Description function;
  if (!describe(section, pc, &function)) return false;
  *begin = function.begin;
  *end = function.end;
  return true;
}

}  // namespace memscope::capture
