#include "import/values.h"

#include <algorithm>

namespace memscope {
namespace {

// How far up the stack the role of a container is looked for: deeper ones have none.
constexpr int kMaxRoleDepth = 8;

}  // namespace

// -- objects --------------------------------------------------------------------------------------

uint64_t Values::new_object(ValueKind kind) {
  uint64_t number = objects_.size();
  if (free_.empty()) {
    objects_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Object& object = objects_[number];
  object.kind = kind;
  object.role = kNoRole;
  object.tag = 0;
  return number;
}

bool Values::push_object(ValueKind kind) {
  if (objects_.size() - free_.size() >= kMaxObjects) {
    return fail("it holds more than " + std::to_string(kMaxObjects) +
                " lists, tuples and dicts that are still referred to");
  }
  if (!next_begins()) return false;
  const uint64_t number = new_object(kind);
  return push({.kind = kind, .age = objects_[number].age & kAgeMask, .bits = number});
}

void Values::release(Value object) {
  if (!alive(object)) return;
  Object& released = objects_[object.bits];
  kept_items_ -= released.items.size();
  constexpr size_t kSmall = 64;  // worth keeping for the next one
  if (released.items.capacity() > kSmall) {
    std::vector<Value>().swap(released.items);  // `= {}` would keep its storage
  } else {
    released.items.clear();
  }
  ++released.age;
  free_.push_back(static_cast<uint32_t>(object.bits));
}

void Values::tag(Value object, uint32_t tag) {
  if (!alive(object)) return;
  Object& tagged = objects_[object.bits];
  kept_items_ -= tagged.items.size();
  std::vector<Value>().swap(tagged.items);
  tagged.tag = tag;
}

bool Values::put(uint64_t object, std::span<const Value> items) {
  if (kept_items_ + items.size() > kMaxItems) {
    return fail("it keeps more than " + std::to_string(kMaxItems) + " values");
  }
  std::vector<Value>& into = objects_[object].items;
  into.insert(into.end(), items.begin(), items.end());
  kept_items_ += items.size();
  return true;
}

// -- the stack ------------------------------------------------------------------------------------

bool Values::push_text(std::string_view text) {
  if (text.size() > kMaxText) {
    return fail("it has a text of " + std::to_string(text.size()) + " bytes, more than " +
                std::to_string(kMaxText));
  }
  const size_t before = texts_.size();
  const StringId id = texts_.intern(text);
  if (texts_.size() != before) text_bytes_ += text.size() + sizeof(std::string);
  if (text_bytes_ > kMaxTexts) {
    return fail("its texts take more than " + std::to_string(kMaxTexts >> 20) + " MiB");
  }
  return push({.kind = ValueKind::kText, .bits = id.value});
}

void Values::enter_level() {
  level_begin_ = levels_.empty() ? 0 : levels_.back().begin;
  level_streams_ = !levels_.empty() && levels_.back().streams;
}

bool Values::mark() {
  if (levels_.size() >= kMaxNesting) {
    return fail("it is nested more than " + std::to_string(kMaxNesting) + " deep");
  }
  const bool streams =
      !stack_.empty() && stack_.back().kind == ValueKind::kList && streams_at(stack_.size() - 1);
  if (!push({.kind = ValueKind::kMark})) return false;
  levels_.push_back({stack_.size(), streams});
  enter_level();
  return true;
}

bool Values::pop_mark() {
  if (levels_.empty()) return fail("it ends a list that it did not begin");
  stack_.resize(levels_.back().begin - 1);
  levels_.pop_back();
  enter_level();
  return true;
}

bool Values::pop() {
  if (stack_.size() <= level_begin_) return fail("it takes a value from where none is");
  stack_.pop_back();
  return true;
}

bool Values::duplicate() {
  if (stack_.size() <= level_begin_) return fail("it repeats a value where none is");
  return push(stack_.back());
}

bool Values::finish(Value& root) {
  if (stack_.size() != 1 || !levels_.empty()) {
    return fail("it ends with " + std::to_string(stack_.size()) + " values instead of one");
  }
  root = stack_.front();
  return true;
}

// -- roles ----------------------------------------------------------------------------------------

// Of the container at a place of the stack, from where it stands:
//
//   dict MARK key value key [container]     the value of a key
//   dict key [container]                    likewise, where the dict has one pair
//   list MARK item item [container]         an item
//   list [container]                        likewise, where the list has one item
uint8_t Values::role_at(size_t place) {
  // Up to the first container whose role is known, then down again.
  struct Step {
    size_t place;
    std::string_view key;
  };
  std::vector<Step> steps;
  uint8_t role = kPlainRole;
  size_t level = levels_.size();
  for (int depth = 0;; ++depth) {
    const Value value = stack_[place];
    if (!alive(value) || depth == kMaxRoleDepth) break;
    if (objects_[value.bits].role != kNoRole) {
      role = objects_[value.bits].role;
      break;
    }
    if (place == 0) {
      role = objects_[value.bits].role = kRootRole;
      break;
    }
    while (level != 0 && levels_[level - 1].begin > place) --level;
    const size_t begin = level == 0 ? 0 : levels_[level - 1].begin;
    const Value below = stack_[place - 1];
    size_t parent = place;
    std::string_view key;
    if (below.kind == ValueKind::kMark) {
      if (begin >= 2 && stack_[begin - 2].kind == ValueKind::kList) parent = begin - 2;
    } else if (below.kind == ValueKind::kText) {
      key = text(below);
      if (begin >= 2 && stack_[begin - 2].kind == ValueKind::kDict && (place - begin) % 2 == 1) {
        parent = begin - 2;
      } else if (place >= begin + 2 && stack_[place - 2].kind == ValueKind::kDict) {
        parent = place - 2;
      }
    } else if (below.kind == ValueKind::kList) {
      const bool sibling = begin >= 2 && alive(stack_[begin - 2]) &&
                           sink_.holds_lists(objects_[stack_[begin - 2].bits].role);
      parent = sibling ? begin - 2 : place - 1;
    } else if (begin >= 2 && stack_[begin - 2].kind == ValueKind::kList) {
      parent = begin - 2;
    }
    if (parent == place) break;
    steps.push_back({place, key});
    place = parent;
  }
  for (; !steps.empty(); steps.pop_back()) {
    Object& object = objects_[stack_[steps.back().place].bits];
    role = sink_.child_role(role, steps.back().key, object.kind);
    object.role = role;
  }
  return role;
}

bool Values::streams_at(size_t place) {
  // Lists that are handed out lie near the root.
  constexpr size_t kMaxStreamLevel = 4;
  if (levels_.size() > kMaxStreamLevel) return false;
  const uint8_t role = role_at(place);
  return sink_.streams(role, stack_[place].kind);
}

// The item at the level's beginning, which is whole: something else begins behind it.
bool Values::hand_out() {
  const Value item = stack_.back();
  stack_.pop_back();
  return hand_out(stack_[level_begin_ - 2], item);
}

bool Values::hand_out(Value list, Value item) {
  if (!alive(list)) return fail("it adds to a list that is gone");
  if (sink_.item(*this, objects_[list.bits].role, list.bits, item)) return true;
  return fail("an item of a list cannot be used");
}

// -- putting things together ----------------------------------------------------------------------

bool Values::append() {
  if (stack_.size() < level_begin_ + 2) return fail("it adds to a list where none is");
  const size_t place = stack_.size() - 2;
  const Value list = stack_[place], item = stack_.back();
  if (list.kind != ValueKind::kList || !alive(list)) return fail("it adds to what is no list");
  const bool streams = streams_at(place);
  stack_.pop_back();
  if (streams) return hand_out(list, item);
  return put(list.bits, std::span(&item, 1));
}

bool Values::appends() {
  if (levels_.empty()) return fail("it ends a list that it did not begin");
  const size_t begin = levels_.back().begin;
  if (begin < 2 || stack_[begin - 2].kind != ValueKind::kList || !alive(stack_[begin - 2])) {
    return fail("it adds to what is no list");
  }
  if (level_streams_) {
    for (size_t i = begin; i < stack_.size(); ++i) {
      if (!hand_out(stack_[begin - 2], stack_[i])) return false;
    }
  } else if (!put(stack_[begin - 2].bits, std::span(stack_).subspan(begin))) {
    return false;
  }
  return pop_mark();
}

bool Values::set_item() {
  if (stack_.size() < level_begin_ + 3) return fail("it sets a key where no dict is");
  const size_t place = stack_.size() - 3;
  const Value dict = stack_[place];
  if (dict.kind != ValueKind::kDict || !alive(dict))
    return fail("it sets a key of what is no dict");
  if (stack_[place + 1].kind != ValueKind::kText) return fail("a dict has a key that is no text");
  const bool fine = put(dict.bits, std::span(stack_).subspan(place + 1));
  stack_.resize(place + 1);
  return fine;
}

bool Values::add_items(Value container, size_t begin) {
  const std::span<const Value> items = std::span<const Value>(stack_).subspan(begin);
  if (container.kind == ValueKind::kDict) {
    if (items.size() % 2 != 0) return fail("a dict has a key without a value");
    for (size_t i = 0; i < items.size(); i += 2) {
      if (items[i].kind != ValueKind::kText) return fail("a dict has a key that is no text");
    }
  }
  return put(container.bits, items);
}

bool Values::set_items() {
  if (levels_.empty()) return fail("it ends a dict that it did not begin");
  const size_t begin = levels_.back().begin;
  if (begin < 2 || stack_[begin - 2].kind != ValueKind::kDict || !alive(stack_[begin - 2])) {
    return fail("it sets keys of what is no dict");
  }
  return add_items(stack_[begin - 2], begin) && pop_mark();
}

bool Values::collect(size_t count) {
  if (stack_.size() < level_begin_ + count) return fail("a tuple has fewer values than it says");
  const size_t begin = stack_.size() - count;
  const auto small = [](const Value& value) {
    return value.kind == ValueKind::kNumber && !value.negative && value.bits >> 32 == 0;
  };
  if (count == 2 && small(stack_[begin]) && small(stack_[begin + 1])) {
    const uint64_t bits = stack_[begin].bits << 32 | stack_[begin + 1].bits;
    stack_.resize(begin);
    return push({.kind = ValueKind::kPair, .bits = bits});
  }
  if (objects_.size() - free_.size() >= kMaxObjects) {
    return fail("it holds more than " + std::to_string(kMaxObjects) + " lists, tuples and dicts");
  }
  const uint64_t number = new_object(ValueKind::kTuple);
  if (!put(number, std::span(stack_).subspan(begin))) return false;
  stack_.resize(begin);
  return push({.kind = ValueKind::kTuple, .age = objects_[number].age & kAgeMask, .bits = number});
}

bool Values::collect(ValueKind kind) {
  if (levels_.empty()) return fail("it ends a list that it did not begin");
  const size_t begin = levels_.back().begin;
  const size_t count = stack_.size() - begin;
  if (kind == ValueKind::kTuple) {
    // What is collected slides down over the mark.
    stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(begin) - 1);
    levels_.pop_back();
    enter_level();
    return collect(count);
  }
  const uint64_t number = new_object(kind);
  const Value made{.kind = kind, .age = objects_[number].age & kAgeMask, .bits = number};
  return add_items(made, begin) && pop_mark() && push(made);
}

bool Values::memoize(uint64_t index) {
  if (stack_.size() <= level_begin_) return fail("it remembers a value where none is");
  if (index > memo_.size() + kMaxMemoJump || index >= kMaxMemo) {
    return fail("it remembers a value under the number " + std::to_string(index) + " after " +
                std::to_string(memo_.size()) + " others");
  }
  const Value value = stack_.back();
  uint64_t packed = 0;
  if (value.kind == ValueKind::kText || value.is_object()) {
    packed = static_cast<uint64_t>(value.kind) << kKindShift |
             static_cast<uint64_t>(value.age) << kAgeShift | value.bits;
  } else if (value.kind == ValueKind::kMark) {
    return fail("it remembers a mark");
  } else {
    if (boxed_.size() == kMaxBoxed) return fail("it remembers too many numbers");
    packed = boxed_.size();
    boxed_.push_back(value);
  }
  if (index == memo_.size()) {
    memo_.push_back(packed);
    return true;
  }
  if (index > memo_.size()) memo_.resize(index + 1, kNothing);
  memo_[index] = packed;
  return true;
}

}  // namespace memscope
