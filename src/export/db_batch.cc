// HOT PATH: add().
#include "export/db_batch.h"

#include "export/dump_text.h"

namespace memscope {

DbBatch::Text DbBatch::keep(std::string_view text, bool quoted) {
  const auto at = static_cast<uint32_t>(text_.size());
  if (quoted) text_ += '"';
  text_ += text;
  if (quoted) text_ += '"';
  return {at, static_cast<uint32_t>(text_.size() - at)};
}

// {"key":"value","key":"value"}: every value a string, and no blanks, for readers look for
// `"allocation_id":"7"` in the text.
DbBatch::Text DbBatch::keep_attrs(std::span<const WrittenAttr> attrs) {
  const auto at = static_cast<uint32_t>(text_.size());
  text_ += '{';
  for (const WrittenAttr& attr : attrs) {
    text_.append(&attr == attrs.data() ? "\"" : ",\"").append(attr.key).append("\":");
    if (attr.text && needs_json_escape(attr.value)) {
      text_ += json_string(attr.value);
    } else {
      text_.append("\"").append(attr.value).append("\"");
    }
  }
  text_ += '}';
  return {at, static_cast<uint32_t>(text_.size() - at)};
}

void DbBatch::add(const WrittenRow& row) {
  // Readers take the quotes off that 26.0 puts around these names: one that has quotes of its own
  // needs them, too.
  const bool has_quotes = row.name.size() >= 2 && row.name.front() == '"' && row.name.back() == '"';
  const bool quote_name = row.quote_name && (compat_ || has_quotes);
  rows_.push_back({.id = row.id,
                   .time = row.time,
                   .pid = row.pid,
                   .tid = row.tid,
                   .event = row.event,
                   .type = row.type,
                   .name = keep(row.name, quote_name),
                   .device = keep(row.device),
                   .ptr = keep(row.ptr),
                   .attr = keep_attrs(row.attrs)});
  Row& kept = rows_.back();
  const auto& python = row.python_stack.text;
  const auto& c = row.c_stack.text;
  if (!python.empty()) kept.python_stack = keep(python, compat_);
  if (!c.empty()) kept.c_stack = keep(c, compat_);
}

void DbBatch::add(const WrittenCall& call) {
  calls_.push_back({call.start, call.end, call.tid, call.pid, keep(call.function)});
}

void DbBatch::clear() {
  text_.clear();
  rows_.clear();
  calls_.clear();
}

}  // namespace memscope
