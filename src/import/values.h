// The values that a snapshot's file builds up, pickle or JSON alike: a stack machine that hands out
// the items of long lists as soon as they are whole, and keeps nothing of them.
//
//   {'segments': [ {...}, {...} ], 'device_traces': [ [ {...}, {...}, ... ] ]}
//                  `--- an item       a list of events ---'  `--- an item
//
// What the containers are for is their role: the sink names the roles of containers by where they
// are (child_role), and says in which roles lists are handed out item by item (streams). An item is
// whole when the next one begins or its list is added to.
//
// Promises
//  * Nothing recursive: any depth of nesting, and a list that contains itself, are just numbers of
//    objects here. Nesting of what is being built is limited to kMaxNesting all the same.
//  * Memory: the items at hand; 8 B for each value that may be referred to again (the memo), which
//  a
//    file pays for with a byte or more; each limit is a number below, and past it error() is set.
//    An announced length never allocates.
//  * Any misuse of the stack sets error(), once, with the reason; then nothing more happens.
// HOT PATH: push(), get(), memoize().
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/stacks.h"

namespace memscope {

enum class ValueKind : uint8_t {
  kNone,
  kBool,
  kNumber,  // an integer: `bits` is its value, in two's complement where `negative`
  kFloat,   // `bits` is a double's
  kText,    // `bits` is a StringId of texts()
  kPair,    // a tuple of two integers below 2^32, such as a pool's id: first << 32 | second
  kList,    // lists, tuples and dicts are objects: `bits` is the object's number
  kTuple,
  kDict,  // items are key, value, key, value, ...
  kMark,
};

struct Value {
  ValueKind kind = ValueKind::kNone;
  bool negative = false;
  uint32_t age = 0;  // of the object that is meant: its number is used again after release()
  uint64_t bits = 0;

  bool is_object() const { return kind >= ValueKind::kList && kind <= ValueKind::kDict; }
};

// Roles that every sink has; its own follow.
inline constexpr uint8_t kNoRole = 0, kPlainRole = 1, kRootRole = 2, kFirstOwnRole = 3;

class Values;

class ItemSink {
 public:
  virtual ~ItemSink() = default;
  // The role of a container under `parent`; `key` is "" in a list.
  virtual uint8_t child_role(uint8_t parent, std::string_view key, ValueKind kind) = 0;
  // Whether items of a list in this role are handed out instead of kept.
  virtual bool streams(uint8_t role, ValueKind kind) const = 0;
  // Whether a list in this role holds lists, so that a list beside a list is its sibling.
  virtual bool holds_lists(uint8_t role) const = 0;
  // An item of the list `list`. False stops the reading; values.fail() says why.
  virtual bool item(Values& values, uint8_t role, uint64_t list, Value item) = 0;
};

class Values {
 public:
  static constexpr size_t kMaxNesting = 64;
  static constexpr size_t kMaxStack = size_t{4} << 20;     // values that wait to be put somewhere
  static constexpr size_t kMaxItems = size_t{32} << 20;    // values in objects that are kept
  static constexpr size_t kMaxObjects = size_t{24} << 20;  // objects at a time
  static constexpr size_t kMaxMemo = size_t{64} << 20;
  static constexpr size_t kMaxMemoJump = 1 << 16;         // of a numbering with holes
  static constexpr size_t kMaxBoxed = 1 << 20;            // numbers in the memo
  static constexpr size_t kMaxText = size_t{1} << 20;     // of one text
  static constexpr size_t kMaxTexts = size_t{256} << 20;  // bytes of all different texts

  explicit Values(ItemSink& sink) : sink_(sink) {}

  // -- building; false where error() is set
  bool push(Value value) {
    if (stack_.size() >= kMaxStack) [[unlikely]]
      return fail("it builds more than " + std::to_string(kMaxStack) + " values at a time");
    stack_.push_back(value);
    return true;
  }
  bool push_text(std::string_view text);
  bool push_object(ValueKind kind);  // an empty list, tuple or dict
  bool push_number(uint64_t value, bool negative = false) {
    return push({.kind = ValueKind::kNumber, .negative = negative, .bits = value});
  }
  bool mark();
  bool pop();
  bool pop_mark();
  bool duplicate();
  bool append();                 // list item -> list
  bool appends();                // list MARK items -> list
  bool set_item();               // dict key value -> dict
  bool set_items();              // dict MARK key value ... -> dict
  bool collect(size_t count);    // items -> tuple
  bool collect(ValueKind kind);  // MARK items -> list, tuple or dict

  bool memoize(uint64_t index);
  bool memoize() { return memoize(memo_.size()); }
  bool get(uint64_t index) {
    if (index >= memo_.size() || memo_[index] == kNothing) [[unlikely]]
      return fail("it refers to value " + std::to_string(index) + ", which there is not");
    const uint64_t packed = memo_[index];
    const auto kind = static_cast<ValueKind>(packed >> kKindShift);
    if (kind == ValueKind::kNone) return push(boxed_[packed & kBitsMask]);
    if (kind != ValueKind::kText && !next_begins()) [[unlikely]]
      return false;
    return push({.kind = kind,
                 .age = static_cast<uint32_t>(packed >> kAgeShift & kAgeMask),
                 .bits = packed & kBitsMask});
  }
  // The one value that is left. False where there is not exactly one.
  bool finish(Value& root);

  // -- looking at values
  // An object's items; empty for what is none, was released or tagged.
  std::span<const Value> items(Value object) const {
    return alive(object) ? std::span<const Value>(objects_[object.bits].items)
                         : std::span<const Value>();
  }
  bool alive(Value object) const {
    return object.is_object() && (objects_[object.bits].age & kAgeMask) == object.age;
  }
  std::string_view text(Value value) const {
    return value.kind == ValueKind::kText ? texts_.text(StringId(static_cast<uint32_t>(value.bits)))
                                          : std::string_view();
  }
  const StringTable& texts() const { return texts_; }

  // -- what a sink does with an item
  // Its own number instead of the contents, for objects that are referred to again and again.
  void tag(Value object, uint32_t tag);
  uint32_t tag_of(Value object) const { return alive(object) ? objects_[object.bits].tag : 0; }
  // Forgets the object; a later reference to it finds nothing in it.
  void release(Value object);

  bool fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  const std::string& error() const { return error_; }
  size_t memo_size() const { return memo_.size(); }

 private:
  struct Object {
    std::vector<Value> items;
    uint32_t age = 0;
    uint32_t tag = 0;
    uint8_t role = kNoRole;
    ValueKind kind = ValueKind::kList;
  };
  struct Level {
    size_t begin = 0;  // of its values in the stack, behind the mark
    bool streams = false;
  };
  // memo: | kind 4 | age 24 | number 36 |; kNone: `number` of a boxed value.
  static constexpr int kKindShift = 60, kAgeShift = 36;
  static constexpr uint32_t kAgeMask = (1u << 24) - 1;
  static constexpr uint64_t kBitsMask = (uint64_t{1} << 36) - 1;
  static constexpr uint64_t kNothing = ~uint64_t{0};

  // A container begins at the level of a list that is handed out: the item before it is whole. (A
  // text there is the key of a dict that has one pair.)
  bool next_begins() { return !level_streams_ || stack_.size() != level_begin_ + 1 || hand_out(); }
  bool hand_out();
  bool hand_out(Value list, Value item);
  bool put(uint64_t object, std::span<const Value> items);
  bool add_items(Value container, size_t begin);
  uint8_t role_at(size_t place);
  bool streams_at(size_t place);
  void enter_level();
  uint64_t new_object(ValueKind kind);

  ItemSink& sink_;
  std::vector<Value> stack_;
  std::vector<Level> levels_;
  size_t level_begin_ = 0;  // of the innermost level
  bool level_streams_ = false;
  std::deque<Object> objects_;
  std::vector<uint32_t> free_;  // objects to be used again
  size_t kept_items_ = 0;
  std::deque<uint64_t> memo_;
  std::vector<Value> boxed_;
  StringTable texts_;
  size_t text_bytes_ = 0;
  std::string error_;
};

}  // namespace memscope
