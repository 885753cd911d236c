#include "trace/format_doc.h"

#include <string_view>

#include "trace/record_table.h"

namespace memscope {
namespace {

void begin_record(std::string& out, std::string_view name, int number, std::string_view comment) {
  out += "\n### " + std::to_string(number) + " " + std::string(name) + "\n\n";
  out += std::string(comment) + "\n\n";
  out += "| field | type | meaning |\n|---|---|---|\n";
}

void add_field(std::string& out, std::string_view type, std::string_view name,
               std::string_view comment) {
  out += "| `" + std::string(name) + "` | " + std::string(type) + " | " + std::string(comment) +
         " |\n";
}

}  // namespace

std::string record_tables() {
  std::string out;
#define MEMSCOPE_FIELD(type, name, comment) add_field(out, #type, #name, comment);
#define MEMSCOPE_RECORD(name, number, comment, ...) \
  begin_record(out, #name, number, comment);        \
  __VA_ARGS__
  out += "## Hot records\n";
  MEMSCOPE_HOT_RECORDS(MEMSCOPE_RECORD, MEMSCOPE_FIELD)
  out += "\n## Cold records\n";
  MEMSCOPE_COLD_RECORDS(MEMSCOPE_RECORD, MEMSCOPE_FIELD)
#undef MEMSCOPE_RECORD
#undef MEMSCOPE_FIELD
  return out;
}

std::string with_record_tables(const std::string& document) {
  const size_t begin = document.find(kFormatDocBegin);
  const size_t end = document.find(kFormatDocEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return document.substr(0, begin) + kFormatDocBegin + "\n\n" + record_tables() + "\n" +
         document.substr(end);
}

}  // namespace memscope
