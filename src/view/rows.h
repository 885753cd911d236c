// The tables of blocks and of events: columns, filters, and an order over several columns.
//
//   RowQuery query = ...;
//   Result<RowSet> rows = select_rows(table, query);   // numbers of blocks or events, sorted
//   cell(table, rows.value().rows[0], column)
//
// Sorting is by radix, stable, last column first: ties are in the order of the rows' numbers. Time
// is linear in the rows. A page alone costs less: rows that cannot be on it are not sorted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "view/colouring.h"
#include "view/input_index.h"

namespace memscope::view {

enum class RowKind : uint8_t { kBlocks, kEvents };

enum class Column : uint8_t {
  kBlock,
  kEvent,
  kKind,
  kTime,
  kAddress,
  kSize,
  kBegin,
  kEnd,
  kLifetime,
  kStep,
  kEndStep,
  kAllocated,
  kOwner,
  kSite,
  kFunction,
  kThread,
  kState,
  kSiteId,
  kStackId,
};

struct ColumnInfo {
  Column column;
  std::string_view name, type;  // types of docs/view-api.md
  bool text() const { return type == "text"; }
};
// In the order in which rows give them.
std::span<const ColumnInfo> columns_of(RowKind kind);
const ColumnInfo* find_column(RowKind kind, std::string_view name);

// What the rows are taken from.
struct RowTable {
  RowKind kind = RowKind::kBlocks;
  const InputIndex* input = nullptr;
  const PoolIndex* pool = nullptr;
  int64_t shift = 0;  // added to moments, in rows and in filters

  uint32_t count() const { return kind == RowKind::kBlocks ? pool->blocks() : pool->events(); }
  uint32_t first() const { return kind == RowKind::kBlocks ? 1 : 0; }
  // nullopt for what is unknown, and for text.
  std::optional<int64_t> number(uint32_t row, Column column) const;
  // A number that stands for the text of a row: equal numbers, equal texts.
  uint32_t text_key(uint32_t row, Column column) const;
  size_t text_keys(Column column) const;
  std::string text_of_key(uint32_t key, Column column) const;
  std::string text(uint32_t row, Column column) const {
    return text_of_key(text_key(row, column), column);
  }

  uint32_t block_of(uint32_t row) const {
    return kind == RowKind::kBlocks ? row : pool->event[row] & ~kFreeBit;
  }
  // Events that never happened have no row.
  bool exists(uint32_t row) const { return block_of(row) != 0; }
};

struct SortBy {
  Column column = Column::kBlock;
  bool descending = false;
};

using RowFilter = std::function<bool(uint32_t row)>;

struct RowQuery {
  std::vector<RowFilter> filters;
  std::vector<SortBy> sort;
};

struct RowSet {
  std::vector<uint32_t> rows;
  uint64_t bytes = 0;  // of the rows' sizes
};
RowSet select_rows(const RowTable& table, const RowQuery& query);
// The rows that the filters take, in the order of their numbers.
RowSet filter_rows(const RowTable& table, const std::vector<RowFilter>& filters);
// Rows offset..offset+limit-1 of what sorting `rows` would give.
std::vector<uint32_t> page_of(const RowTable& table, const std::vector<uint32_t>& rows,
                              const std::vector<SortBy>& sort, size_t offset, size_t limit);

// The filters and the order as the request has them (docs/view-api.md): JSON and `a:desc,b`.
struct FilterContext {
  const std::vector<VerdictBlocks>* verdicts = nullptr;
  std::function<const Colouring*(ColourBy)> colouring;
};
Result<std::vector<RowFilter>> filters_from_json(const RowTable& table, std::string_view json,
                                                 const FilterContext& context);
Result<std::vector<SortBy>> sort_from_text(RowKind kind, std::string_view text);

}  // namespace memscope::view
