// Rows on their way into a database: a fixed number of bytes of them, ready to be taken over as
// they are. HOT PATH: add().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/written_row.h"

namespace memscope {

class DbBatch {
 public:
  // A piece of the batch's text.
  struct Text {
    uint32_t at = 0, size = 0;
  };
  struct Row {
    uint64_t id = 0, time = 0, pid = 0, tid = 0;
    std::string_view event, type;  // literals
    Text name, device, ptr, attr, python_stack, c_stack;
  };
  struct Call {
    uint64_t start = 0, end = 0, tid = 0, pid = 0;
    Text function;
  };

  // `compat`: MSTX names and stacks get the quotes of a csv, as msMemScope 26.0 wrote them.
  explicit DbBatch(bool compat) : compat_(compat) {}

  void add(const WrittenRow& row);
  void add(const WrittenCall& call);
  void clear();

  bool empty() const { return rows_.empty() && calls_.empty(); }
  bool full() const { return rows_.size() >= kRows || text_.size() >= kTextBytes; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Call>& calls() const { return calls_; }
  std::string_view text(Text text) const { return {text_.data() + text.at, text.size}; }

 private:
  // Small enough to stay in the processor's cache between the two who work on it.
  static constexpr size_t kRows = 2048, kTextBytes = 512 * 1024;

  Text keep(std::string_view text, bool quoted = false);
  Text keep_attrs(std::span<const WrittenAttr> attrs);

  bool compat_;
  std::string text_;
  std::vector<Row> rows_;
  std::vector<Call> calls_;
};

}  // namespace memscope
