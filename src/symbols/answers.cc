#include "symbols/answers.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace memscope {
namespace {

constexpr size_t kMaxText = 8192;
constexpr size_t kMaxLines = 256;  // inlined into one another at one place
constexpr uint32_t kInlined = 1u << 31;

// Takes pieces off a stream's front.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}
  template <typename Value>
  bool take(Value& value) {
    if (rest_.size() < sizeof(value)) return false;
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return true;
  }
  bool take_text(std::string_view& text) {
    uint32_t size = 0;
    if (!take(size) || size > kMaxText || rest_.size() < size) return false;
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

 private:
  std::string_view rest_;
};

}  // namespace

void AnswerWriter::number(uint32_t value) {
  buffer_.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint32_t AnswerWriter::text(const std::string& text) {
  if (text.empty()) return 0;
  const auto [at, fresh] = texts_.emplace(text, static_cast<uint32_t>(texts_.size() + 1));
  if (fresh) {
    const size_t size = std::min(text.size(), kMaxText);
    buffer_ += 'S';
    number(static_cast<uint32_t>(size));
    buffer_.append(text, 0, size);
  }
  return at->second;
}

void AnswerWriter::answer(uint32_t index, std::span<const Line> lines) {
  if (lines.size() > kMaxLines) lines = lines.first(kMaxLines);
  std::vector<uint32_t> words;
  for (const Line& line : lines) {
    words.push_back(text(line.function));
    words.push_back(text(line.file));
    words.push_back((line.line & ~kInlined) | (line.inlined ? kInlined : 0));
  }
  buffer_ += 'A';
  number(index);
  const auto count = static_cast<uint16_t>(lines.size());
  buffer_.append(reinterpret_cast<const char*>(&count), sizeof(count));
  for (const uint32_t word : words) number(word);
  constexpr size_t kFull = 32768;
  if (buffer_.size() >= kFull) flush();
}

void AnswerWriter::status(LookUpStatus status, std::string_view detail) {
  detail = detail.substr(0, kMaxText);
  buffer_ += 'T';
  buffer_ += static_cast<char>(status);
  number(static_cast<uint32_t>(detail.size()));
  buffer_ += detail;
  flush();
}

void AnswerWriter::end() {
  buffer_ += 'E';
  flush();
}

void AnswerWriter::flush() {
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t wrote = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;  // nobody listens any more
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
}

bool AnswerReader::read(std::string_view stream) const {
  Cursor cursor(stream);
  std::vector<std::string_view> texts{""};
  std::vector<Line> lines;
  for (char kind = 0; cursor.take(kind);) {
    if (kind == 'E') return true;
    if (kind == 'S') {
      std::string_view text;
      if (!cursor.take_text(text)) return false;
      texts.push_back(text);
    } else if (kind == 'T') {
      uint8_t number = 0;
      std::string_view detail;
      if (!cursor.take(number) || !cursor.take_text(detail)) return false;
      if (number > static_cast<uint8_t>(LookUpStatus::kLast)) return false;
      status(static_cast<LookUpStatus>(number), detail);
    } else if (kind == 'A') {
      uint32_t index = 0;
      uint16_t count = 0;
      if (!cursor.take(index) || !cursor.take(count) || count > kMaxLines) return false;
      lines.clear();
      for (uint16_t i = 0; i < count; ++i) {
        uint32_t function = 0, file = 0, line = 0;
        if (!cursor.take(function) || !cursor.take(file) || !cursor.take(line)) return false;
        if (function >= texts.size() || file >= texts.size()) return false;
        lines.push_back({texts[function], texts[file], line & ~kInlined, (line & kInlined) != 0});
      }
      answer(index, lines);
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace memscope
