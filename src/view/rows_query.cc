// Filters and orders of the tables, from a request's text.
#include <nlohmann/json.hpp>

#include "view/rows.h"
#include "view/text.h"

namespace memscope::view {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFilters = 32, kMaxSort = 4;

Error refuse(const std::string& what) {
  return Error{"where: " + what};
}

std::optional<int64_t> number_of(const Json& value) {
  if (value.is_number_unsigned()) return static_cast<int64_t>(value.get<uint64_t>());
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (!(std::abs(number) < 9e18)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_string()) return number_from_text(value.get_ref<const std::string&>());
  return std::nullopt;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

Result<std::pair<int64_t, int64_t>> range_of(const Json& value) {
  if (value.is_array() && value.size() == 2) {
    const auto from = number_of(value[0]), to = number_of(value[1]);
    if (from && to) return std::pair(*from, *to);
  }
  return refuse("a range is [from, to], two numbers");
}

Result<RowFilter> number_filter(const RowTable& table, const ColumnInfo& info,
                                const std::string& op, const Json& value) {
  const Column column = info.column;
  if (column == Column::kAllocated) return refuse("allocated cannot be filtered");
  if (op == "is") {
    const bool null = value.is_null() || value == "null";
    return RowFilter(
        [table, column, null](uint32_t row) { return !table.number(row, column) == null; });
  }
  if (op == "in") {
    auto range = range_of(value);
    if (!range) return range.error();
    return RowFilter([table, column, range = range.value()](uint32_t row) {
      const auto number = table.number(row, column);
      return number && *number >= range.first && *number <= range.second;
    });
  }
  const auto wanted = number_of(value);
  if (!wanted) {
    return refuse(std::string(info.name) + ": \"" + cut(value.dump(), 60) +
                  "\" is no number (decimal, 0x..., 4k, 1.5MiB, 20ms)");
  }
  const auto compare = [&](auto holds) {
    return RowFilter([table, column, wanted = *wanted, holds](uint32_t row) {
      const auto number = table.number(row, column);
      return number && holds(*number, wanted);
    });
  };
  if (op == "=") return compare([](int64_t a, int64_t b) { return a == b; });
  if (op == "!=") return compare([](int64_t a, int64_t b) { return a != b; });
  if (op == "<") return compare([](int64_t a, int64_t b) { return a < b; });
  if (op == "<=") return compare([](int64_t a, int64_t b) { return a <= b; });
  if (op == ">") return compare([](int64_t a, int64_t b) { return a > b; });
  if (op == ">=") return compare([](int64_t a, int64_t b) { return a >= b; });
  return refuse("no such comparison of numbers: " + cut(op, 40));
}

Result<RowFilter> text_filter(const RowTable& table, const ColumnInfo& info, const std::string& op,
                              const Json& value) {
  if (!value.is_string()) return refuse(std::string(info.name) + ": text is wanted");
  const auto& wanted = value.get_ref<const std::string&>();
  // Each text once, not each row.
  std::vector<bool> matches(table.text_keys(info.column));
  for (uint32_t key = 0; key < matches.size(); ++key) {
    const std::string text = table.text_of_key(key, info.column);
    if (op == "contains") {
      matches[key] = lower(text).find(lower(wanted)) != std::string::npos;
    } else if (op == "=" || op == "!=") {
      matches[key] = (text == wanted) == (op == "=");
    } else {
      return refuse("no such comparison of texts: " + cut(op, 40));
    }
  }
  return RowFilter([table, column = info.column, matches = std::move(matches)](uint32_t row) {
    return matches[table.text_key(row, column)];
  });
}

// Stacks with a frame whose function or file has `part` in it.
std::vector<bool> stacks_with(const InputIndex& input, std::string_view part) {
  const std::string wanted = lower(part);
  std::vector<int8_t> frames;  // -1 unknown
  std::vector<bool> stacks(input.stacks.size());
  for (uint32_t stack = 1; stack < stacks.size(); ++stack) {
    const uint32_t frame = input.stacks.innermost(StackId(stack)).value;
    if (frame >= frames.size()) frames.resize(frame + 1, -1);
    if (frames[frame] < 0) {
      const Frame& at = input.stacks.frame(FrameId(frame));
      const auto has = [&](std::string_view text) {
        return lower(text).find(wanted) != std::string::npos;
      };
      bool found = has(input.strings.text(at.function)) || has(input.strings.text(at.file));
      if (at.kind == FrameKind::kNative && !found) {
        // As it is shown: by the names it was given, or "object+0xoffset".
        found = has(input.describe_frame(FrameId(frame)).function);
        for (const SourceFrame& named : input.names_of(at)) {
          found = found || has(named.function) || has(named.file);
        }
      }
      frames[frame] = found ? 1 : 0;
    }
    stacks[stack] = frames[frame] == 1 || stacks[input.stacks.parent(StackId(stack)).value];
  }
  return stacks;
}

Result<RowFilter> row_filter(const RowTable& table, const std::string& op, const Json& filter,
                             const FilterContext& context) {
  const PoolIndex* pool = table.pool;
  const Json value = filter.value("value", Json());
  if (op == "alive_at") {
    const auto time = number_of(value);
    if (!time) return refuse("alive_at wants a time");
    const uint32_t state =
        *time < table.shift ? 0 : pool->state_at(static_cast<uint64_t>(*time - table.shift));
    return RowFilter(
        [table, pool, state](uint32_t row) { return pool->alive(table.block_of(row), state); });
  }
  if (op == "born_in" || op == "unfreed_in") {
    auto range = range_of(value);
    if (!range) return range.error();
    const auto state = [&](int64_t time) {
      return time < table.shift ? 0 : pool->state_before(static_cast<uint64_t>(time - table.shift));
    };
    const uint32_t from = state(range.value().first), to = state(range.value().second);
    const bool unfreed = op == "unfreed_in";
    return RowFilter([table, pool, from, to, unfreed](uint32_t row) {
      const uint32_t block = table.block_of(row);
      const uint32_t born = pool->alloc_event[block];
      return born >= from && born < to && (!unfreed || pool->free_event[block] >= to);
    });
  }
  if (op == "class") {
    const auto by = colour_from_name(filter.value("colour", ""));
    if (!by || !value.is_array()) return refuse("class wants a colour and a list of ids");
    uint32_t mask = 0;
    for (const Json& id : value) {
      const auto number = number_of(id);
      if (number && *number >= 0 && *number < kMaxClasses) mask |= 1u << *number;
    }
    const Colouring* colouring = context.colouring(*by);
    return RowFilter([table, colouring, mask](uint32_t row) {
      return (mask >> colouring->of_block[table.block_of(row)] & 1) != 0;
    });
  }
  if (op == "verdict") {
    const auto wanted = number_of(value);
    if (!wanted || context.verdicts == nullptr) return refuse("verdict wants its number");
    return RowFilter([table, verdicts = context.verdicts, wanted = *wanted](uint32_t row) {
      return verdict_of(*table.input, *table.pool, *verdicts, table.block_of(row)) == wanted;
    });
  }
  if (op == "stack_has") {
    if (!value.is_string()) return refuse("stack_has wants a part of a name");
    return RowFilter([table, pool, stacks = stacks_with(*table.input, value.get<std::string>())](
                         uint32_t row) { return stacks[pool->stack[table.block_of(row)]]; });
  }
  return refuse("no such filter: " + cut(op, 40));
}

Result<RowFilter> column_filter(const RowTable& table, const std::string& op, const Json& filter) {
  const std::string name = filter["column"];
  const ColumnInfo* info = find_column(table.kind, name);
  if (info == nullptr) return refuse("no such column: " + cut(name, 40));
  const Json value = filter.value("value", Json());
  return info->text() ? text_filter(table, *info, op, value)
                      : number_filter(table, *info, op, value);
}

}  // namespace

Result<std::vector<RowFilter>> filters_from_json(const RowTable& table, std::string_view json,
                                                 const FilterContext& context) {
  std::vector<RowFilter> filters;
  if (json.empty()) return filters;
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_array()) return refuse("a JSON list of filters is wanted");
  if (list.size() > kMaxFilters) return refuse("too many filters");
  for (const Json& filter : list) {
    if (!filter.is_object() || !filter.contains("op") || !filter["op"].is_string() ||
        (filter.contains("colour") && !filter["colour"].is_string()) ||
        (filter.contains("column") && !filter["column"].is_string())) {
      return refuse("a filter is {\"column\", \"op\", \"value\"}");
    }
    const std::string op = filter["op"];
    Result<RowFilter> made = filter.contains("column") ? column_filter(table, op, filter)
                                                       : row_filter(table, op, filter, context);
    if (!made) return made.error();
    filters.push_back(std::move(made).value());
  }
  return filters;
}

Result<std::vector<SortBy>> sort_from_text(RowKind kind, std::string_view text) {
  std::vector<SortBy> sort;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    SortBy by;
    if (const size_t colon = part.find(':'); colon != std::string_view::npos) {
      const std::string_view way = part.substr(colon + 1);
      if (way != "asc" && way != "desc")
        return Error{"sort: a column is followed by :asc or :desc"};
      by.descending = way == "desc";
      part = part.substr(0, colon);
    }
    const ColumnInfo* info = find_column(kind, part);
    if (info == nullptr || info->column == Column::kAllocated) {
      return Error{"sort: no such column to sort by: " + cut(part, 40)};
    }
    by.column = info->column;
    if (sort.size() == kMaxSort) return Error{"sort: 4 columns at most"};
    sort.push_back(by);
  }
  return sort;
}

}  // namespace memscope::view
