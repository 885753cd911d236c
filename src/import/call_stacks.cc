#include "import/call_stacks.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace memscope {
namespace {

constexpr size_t kNone = std::string_view::npos;

constexpr uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

std::string_view without_quotes(std::string_view text) {
  const auto blank = [](char c) { return c == '"' || c == '\n' || c == '\r' || c == ' '; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text == "NA" || text == "N/A" ? std::string_view() : text;
}

}  // namespace

FrameText parse_python_frame(std::string_view line) {
  // The last `(digits): ` of the line: files may have brackets in their names, functions have none
  // with digits and a colon after them.
  for (size_t close = line.rfind("): "); close != kNone && close != 0;
       close = line.rfind("): ", close - 1)) {
    size_t open = close;
    while (open > 0 && line[open - 1] >= '0' && line[open - 1] <= '9') --open;
    if (open == close || open == 0 || line[open - 1] != '(') continue;
    FrameText frame{.file = line.substr(0, open - 1), .function = line.substr(close + 3)};
    const auto parsed = std::from_chars(line.data() + open, line.data() + close, frame.line);
    if (parsed.ec == std::errc{}) return frame;
  }
  return {.function = line};
}

FrameText parse_native_frame(std::string_view line) {
  const size_t open = line.rfind('(');
  const size_t close = open == kNone ? kNone : line.find(')', open);
  if (close == kNone || open == 0) return {.function = line};
  std::string_view symbol = line.substr(open + 1, close - open - 1);
  // `name+0x118`, or `+0x3e1214` where the object has no name for the place.
  if (const size_t plus = symbol.rfind("+0x"); plus != kNone && plus != 0) {
    symbol = symbol.substr(0, plus);
  }
  return {.file = line.substr(0, open), .function = symbol};
}

WideHash CallStacks::hash_of(std::string_view python, std::string_view native) {
  WideHash hash{python.size(), native.size() ^ 0xD6E8FEB86659FD93u};
  for (const std::string_view text : {python, native}) {
    size_t at = 0;
    uint64_t word = 0;
    for (; at + 8 <= text.size(); at += 8) {
      std::memcpy(&word, text.data() + at, 8);
      hash.first = mix(hash.first, word);
      hash.second = mix(hash.second + word, 0xA0761D6478BD642Fu);
    }
    word = 0;
    if (at != text.size()) std::memcpy(&word, text.data() + at, text.size() - at);
    hash.first = mix(hash.first, word);
    hash.second = mix(hash.second + word, 0xE7037ED1A0B428DBu);
  }
  return hash;
}

StringId CallStacks::text(std::string_view text) {
  const size_t before = strings_.size();
  const StringId id = strings_.intern(text);
  if (strings_.size() != before) text_bytes_ += text.size() + 64;
  return id;
}

void CallStacks::add_frames(std::string_view text_of_all, FrameKind kind) {
  size_t count = 0;
  for (size_t at = 0; at < text_of_all.size() && count < kMaxFrames;) {
    const size_t end = std::min(text_of_all.find('\n', at), text_of_all.size());
    const std::string_view line = without_quotes(text_of_all.substr(at, end - at));
    at = end + 1;
    if (line.empty()) continue;
    ++count;
    const FrameText frame =
        kind == FrameKind::kPython ? parse_python_frame(line) : parse_native_frame(line);
    frames_.push_back({.file = text(frame.file),
                       .function = text(frame.function),
                       .line = frame.line,
                       .end_line = frame.line,
                       .kind = kind});
  }
}

StackId CallStacks::intern(std::string_view python, std::string_view native) {
  python = without_quotes(python);
  native = without_quotes(native);
  if (python.empty() && native.empty()) return {};
  const WideHash hash = hash_of(python, native);
  if (const auto known = known_.find(hash); known != known_.end()) return known->second;
  if (stacks_.size() >= kMaxNodes || text_bytes_ >= kMaxTextBytes || known_.size() >= kMaxNodes) {
    ++left_out_;
    return {};
  }
  frames_.clear();
  add_frames(native, FrameKind::kNative);
  add_frames(python, FrameKind::kPython);
  StackId stack;
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    stack = stacks_.intern(stack, stacks_.intern_frame(*frame));
  }
  known_.emplace(hash, stack);
  return stack;
}

}  // namespace memscope
