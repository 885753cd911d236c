// HOT PATH: the loop of PickleReader::read().
#include "import/pickle_reader.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

namespace memscope {
namespace {

// Lib/pickletools.py's names.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kAppends = 'e',
  kDict = 'd',
  kEmptyDict = '}',
  kList = 'l',
  kEmptyList = ']',
  kSetItem = 's',
  kSetItems = 'u',
  kTuple = 't',
  kEmptyTuple = ')',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

// What only a pickle of objects has: each runs, or can run, code of the file's choice.
struct Refused {
  uint8_t opcode;
  const char* name;
};
constexpr std::array<Refused, 15> kRefused = {{{'c', "GLOBAL"},
                                               {0x93, "STACK_GLOBAL"},
                                               {'i', "INST"},
                                               {'o', "OBJ"},
                                               {0x81, "NEWOBJ"},
                                               {0x92, "NEWOBJ_EX"},
                                               {'R', "REDUCE"},
                                               {'b', "BUILD"},
                                               {'P', "PERSID"},
                                               {'Q', "BINPERSID"},
                                               {0x82, "EXT1"},
                                               {0x83, "EXT2"},
                                               {0x84, "EXT4"},
                                               {0x97, "NEXT_BUFFER"},
                                               {0x98, "READONLY_BUFFER"}}};

template <typename T>
T little(const uint8_t* bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

std::string hex(unsigned byte) {
  constexpr const char* kDigits = "0123456789abcdef";
  return std::string("0x") + kDigits[byte >> 4 & 15u] + kDigits[byte & 15u];
}

class PickleReader {
 public:
  PickleReader(ByteStream& bytes, Values& values) : bytes_(bytes), values_(values) {}

  Result<Value> read() {
    Value root;
    while (step()) {
    }
    if (stopped_ && values_.finish(root)) return root;
    std::string why = error_.empty() ? values_.error() : error_;
    if (why.empty()) why = bytes_.error();
    if (why.empty()) why = "the pickle is cut off: it does not come to its end (STOP)";
    return Error{"at byte " + std::to_string(at_) + ": " + why};
  }

 private:
  // One opcode. False at the end or where there is an error.
  bool step();
  bool text(size_t size);
  bool skip_bytes(uint64_t size);
  bool long_number(uint64_t size);
  bool other(uint8_t opcode);
  bool fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  bool need(size_t count) {
    if (bytes_.need(count)) [[likely]]
      return true;
    return false;
  }
  // A number behind an opcode.
  template <typename T>
  bool argument(T& value) {
    if (!need(sizeof(T))) return false;
    value = little<T>(bytes_.at());
    bytes_.skip(sizeof(T));
    return true;
  }
  template <typename T>
  bool sized_text() {
    T size;
    if (!argument(size)) return false;
    if (size > Values::kMaxText) {
      return fail("a text of " + std::to_string(size) + " bytes is announced, more than " +
                  std::to_string(Values::kMaxText));
    }
    return text(static_cast<size_t>(size));
  }
  template <typename T>
  bool sized_bytes() {
    T size;
    return argument(size) && skip_bytes(size);
  }

  ByteStream& bytes_;
  Values& values_;
  uint64_t at_ = 0;  // of the opcode at hand
  bool stopped_ = false;
  std::string error_;
};

bool PickleReader::step() {
  at_ = bytes_.offset();
  if (!need(1)) return false;
  const uint8_t opcode = *bytes_.at();
  bytes_.skip(1);
  switch (opcode) {
    case kBinGet: {
      uint8_t index;
      return argument(index) && values_.get(index);
    }
    case kLongBinGet: {
      uint32_t index;
      return argument(index) && values_.get(index);
    }
    case kMark:
      return values_.mark();
    case kMemoize:
      return values_.memoize();
    case kBinInt1: {
      uint8_t value;
      return argument(value) && values_.push_number(value);
    }
    case kBinInt2: {
      uint16_t value;
      return argument(value) && values_.push_number(value);
    }
    case kBinInt: {
      int32_t value;
      return argument(value) &&
             values_.push_number(static_cast<uint64_t>(int64_t{value}), value < 0);
    }
    case kLong1: {
      uint8_t size;
      return argument(size) && long_number(size);
    }
    case kEmptyDict:
      return values_.push_object(ValueKind::kDict);
    case kEmptyList:
      return values_.push_object(ValueKind::kList);
    case kSetItems:
      return values_.set_items();
    case kAppends:
      return values_.appends();
    case kAppend:
      return values_.append();
    case kSetItem:
      return values_.set_item();
    case kShortBinUnicode:
      return sized_text<uint8_t>();
    default:
      return other(opcode);
  }
}

// The opcodes that are few in a file.
bool PickleReader::other(uint8_t opcode) {
  switch (opcode) {
    case kProto: {
      uint8_t version;
      if (!argument(version)) return false;
      if (version > 5) return fail("pickle protocol " + std::to_string(version) + " is not known");
      return true;
    }
    case kFrame: {
      uint64_t size;
      // A hint for reading ahead; one longer than the file shows that the file is cut off, which
      // its missing end shows too.
      return argument(size);
    }
    case kStop:
      stopped_ = true;
      return false;
    case kBinUnicode:
      return sized_text<uint32_t>();
    case kBinUnicode8:
      return sized_text<uint64_t>();
    case kShortBinString:
      return sized_text<uint8_t>();
    case kBinString:
      return sized_text<uint32_t>();
    case kShortBinBytes:
      return sized_bytes<uint8_t>();
    case kBinBytes:
      return sized_bytes<uint32_t>();
    case kBinBytes8:
    case kByteArray8:
      return sized_bytes<uint64_t>();
    case kNone:
      return values_.push({});
    case kNewTrue:
    case kNewFalse:
      return values_.push({.kind = ValueKind::kBool, .bits = opcode == kNewTrue ? 1u : 0u});
    case kBinFloat: {
      uint64_t bits;
      return argument(bits) &&
             values_.push({.kind = ValueKind::kFloat, .bits = __builtin_bswap64(bits)});
    }
    case kLong4: {
      uint32_t size;
      return argument(size) && long_number(size);
    }
    case kEmptyTuple:
      return values_.collect(0);
    case kTuple1:
      return values_.collect(1);
    case kTuple2:
      return values_.collect(2);
    case kTuple3:
      return values_.collect(3);
    case kTuple:
      return values_.collect(ValueKind::kTuple);
    case kList:
      return values_.collect(ValueKind::kList);
    case kDict:
      return values_.collect(ValueKind::kDict);
    case kBinPut: {
      uint8_t index;
      return argument(index) && values_.memoize(index);
    }
    case kLongBinPut: {
      uint32_t index;
      return argument(index) && values_.memoize(index);
    }
    case kPop:
      return values_.pop();
    case kPopMark:
      return values_.pop_mark();
    case kDup:
      return values_.duplicate();
    default:
      break;
  }
  for (const Refused& refused : kRefused) {
    if (refused.opcode == opcode) {
      return fail(std::string("it asks for Python code to be run (opcode ") + refused.name +
                  "), which no snapshot of memory does; nothing of it was run");
    }
  }
  return fail("opcode " + hex(opcode) + " is none that a snapshot has");
}

bool PickleReader::text(size_t size) {
  if (!need(size)) return false;
  const std::string_view text(reinterpret_cast<const char*>(bytes_.at()), size);
  if (!values_.push_text(text)) return false;
  bytes_.skip(size);
  return true;
}

// Bytes say nothing about memory: they are passed over.
bool PickleReader::skip_bytes(uint64_t size) {
  while (size != 0) {
    if (!need(1)) return false;
    const size_t part = size < bytes_.ready() ? static_cast<size_t>(size) : bytes_.ready();
    bytes_.skip(part);
    size -= part;
  }
  return values_.push({});
}

// Two's complement, least byte first. An address from 2^63 on takes nine bytes.
bool PickleReader::long_number(uint64_t size) {
  constexpr size_t kMostBytes = 9;
  if (size > kMostBytes) {
    return fail("a number of " + std::to_string(size) + " bytes is announced, more than the " +
                std::to_string(kMostBytes) + " of an address");
  }
  if (!need(size)) return false;
  std::array<uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), bytes_.at(), size);
  bytes_.skip(size);
  const bool negative = size != 0 && (bytes[size - 1] & 0x80u) != 0;
  if (negative) std::memset(bytes.data() + size, 0xff, bytes.size() - size);
  const auto value = little<uint64_t>(bytes.data());
  const uint8_t top = bytes[8];
  if (top != (negative ? 0xff : 0)) return fail("a number does not fit into 64 bits");
  return values_.push_number(value, negative);
}

}  // namespace

Result<Value> read_pickle(ByteStream& bytes, Values& values) {
  return PickleReader(bytes, values).read();
}

}  // namespace memscope
