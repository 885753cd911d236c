// How a child process tells its parent what it found: a stream of bytes over a pipe.
//
//   +------+----------+--------------------------------------------------------------+
//   | 'S'  | u32 size | bytes                       a text; numbered 1, 2, ...         |
//   | 'A'  | u32 index| u16 count, count x { u32 function, u32 file, u32 line | inlined << 31 } |
//   | 'T'  | u8 status| u32 size, bytes             LookUpStatus and its detail        |
//   | 'E'  |          |                             it came to its end                 |
//   +------+----------+--------------------------------------------------------------+
//
// The parent does not trust it: the child may have been damaged by what it read.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/look_up.h"
#include "tsl/robin_map.h"

namespace memscope {

class AnswerWriter : public AnswerSink {
 public:
  explicit AnswerWriter(int fd) : fd_(fd) {}
  void answer(uint32_t index, std::span<const Line> lines) override;
  void status(LookUpStatus status, std::string_view detail) override;
  void end();

 private:
  uint32_t text(const std::string& text);
  void number(uint32_t value);
  void flush();

  int fd_;
  std::string buffer_;
  tsl::robin_map<std::string, uint32_t> texts_;
};

// What a stream says, as far as it is whole.
struct AnswerReader {
  struct Line {
    std::string_view function, file;
    uint32_t line = 0;
    bool inlined = false;
  };
  std::function<void(uint32_t index, std::span<const Line> lines)> answer;
  std::function<void(LookUpStatus status, std::string_view detail)> status;
  // Whether the stream came to its end.
  bool read(std::string_view stream) const;
};

}  // namespace memscope
