#include "import/row_cells.h"

#include "import/attributes.h"

namespace memscope {

bool is_none(std::string_view cell) {
  return cell.empty() || cell == "N/A" || cell == "NA" || cell == "''" || cell == "\"\"";
}

std::string_view name_of(const FileRow& row) {
  std::string_view name = row[Column::kName];
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
    name = name.substr(1, name.size() - 2);
  }
  return is_none(name) ? std::string_view() : name.substr(0, kMaxRowText);
}

std::string shown(std::string_view cell) {
  constexpr size_t kShown = 40;
  std::string text = "\"" + std::string(cell.substr(0, kShown));
  return text + (cell.size() > kShown ? "...\"" : "\"");
}

RowAttributes::RowAttributes(std::string_view attr) {
  Attributes pairs(attr);
  for (std::string_view key, value; pairs.next(key, value);) {
    // What had escapes does not outlive the next key; nothing but a label has any.
    const bool lasts = value.data() >= attr.data() && value.data() <= attr.data() + attr.size();
    if (key == "owner") {
      owner = value.substr(0, kMaxRowText);
    } else if (!lasts) {
      continue;
    } else if (key == "size") {
      size = value;
    } else if (key == "used") {
      used = value;
    } else if (key == "total") {
      total = value;
    } else if (key == "addr") {
      addr = value;
    } else if (key == "process_used") {
      process_used = value;
    } else if (key == "device_used") {
      device_used = value;
    } else if (key == "type") {
      type = value;
    } else if (key == "streamId") {
      stream = value;
    } else if (key == "taskId") {
      task = value;
    } else if (key == "req_size") {
      req_size = value;
    } else if (key == "source") {
      source = value;
    } else if (key == "backend") {
      backend = value;
    } else if (key == "free") {
      free = value;
    } else if (key == "pinned") {
      pinned = value == "true";
    } else if (key == "shadow") {
      shadow = value == "true";
    }
  }
}

}  // namespace memscope
