#include "import/row_cells.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "import/attributes.h"

namespace memscope {

bool is_none(std::string_view cell) {
  return cell.empty() || cell == "N/A" || cell == "NA" || cell == "''" || cell == "\"\"";
}

std::string_view name_of(const FileRow& row) {
  const std::string_view name = row[Column::kName];
  return is_none(name) ? std::string_view() : name.substr(0, kMaxRowText);
}

std::string_view message_of(const FileRow& row, bool in_db) {
  std::string_view text = row[Column::kName];
  if (in_db && text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return text.substr(0, kMaxRowText);
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
    others = others || (!lasts && key != "owner");
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
    } else if (key == "dropped") {
      dropped = value;
    } else if (key == "dropped_frees") {
      dropped_frees = value;
    } else if (key == "sampled_size") {
      sampled_size = value;
    } else if (key == "pinned") {
      pinned = value == "true";
    } else if (key == "shadow") {
      shadow = value == "true";
    } else if (key != "allocation_id") {
      others = true;
    }
  }
  others = others || !type.empty() || !stream.empty() || !task.empty() || !req_size.empty() ||
           !source.empty() || !backend.empty() || !dropped.empty() || !dropped_frees.empty();
}

std::string other_attributes(std::string_view attr, std::span<const std::string_view> known) {
  constexpr size_t kMaxPairs = 16, kLongestKey = 64;
  nlohmann::ordered_json pairs = nlohmann::ordered_json::object();
  Attributes all(attr);
  for (std::string_view key, value; all.next(key, value) && pairs.size() < kMaxPairs;) {
    const bool word = !key.empty() && key.size() <= kLongestKey &&
                      std::all_of(key.begin(), key.end(), [](char c) {
                        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
                      });
    if (!word || std::find(known.begin(), known.end(), key) != known.end()) continue;
    pairs[std::string(key)] = std::string(value.substr(0, kMaxRowText));
  }
  if (pairs.empty()) return "";
  return pairs.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace memscope
