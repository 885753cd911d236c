#include "view/rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "view/text.h"

namespace memscope::view {
namespace {

constexpr std::array<ColumnInfo, 15> kBlockColumns = {{{Column::kBlock, "block", "id"},
                                                       {Column::kAddress, "address", "address"},
                                                       {Column::kSize, "size", "bytes"},
                                                       {Column::kBegin, "begin", "time"},
                                                       {Column::kEnd, "end", "time"},
                                                       {Column::kLifetime, "lifetime", "duration"},
                                                       {Column::kStep, "step", "int"},
                                                       {Column::kEndStep, "end_step", "int"},
                                                       {Column::kOwner, "owner", "text"},
                                                       {Column::kSite, "site", "text"},
                                                       {Column::kFunction, "function", "text"},
                                                       {Column::kThread, "thread", "text"},
                                                       {Column::kState, "state", "text"},
                                                       {Column::kSiteId, "site_id", "int"},
                                                       {Column::kStackId, "stack_id", "int"}}};
constexpr std::array<ColumnInfo, 14> kEventColumns = {{{Column::kEvent, "event", "id"},
                                                       {Column::kKind, "kind", "text"},
                                                       {Column::kTime, "time", "time"},
                                                       {Column::kBlock, "block", "id"},
                                                       {Column::kAddress, "address", "address"},
                                                       {Column::kSize, "size", "bytes"},
                                                       {Column::kStep, "step", "int"},
                                                       {Column::kAllocated, "allocated", "bytes"},
                                                       {Column::kOwner, "owner", "text"},
                                                       {Column::kSite, "site", "text"},
                                                       {Column::kFunction, "function", "text"},
                                                       {Column::kThread, "thread", "text"},
                                                       {Column::kSiteId, "site_id", "int"},
                                                       {Column::kStackId, "stack_id", "int"}}};

constexpr std::array<std::string_view, 3> kKinds = {"alloc", "free", "seed"};
constexpr std::array<std::string_view, 3> kStates = {"live", "freed", "unknown"};

std::optional<int64_t> some(uint64_t value) {
  return static_cast<int64_t>(value);
}

struct Keyed {
  uint64_t key;
  uint32_t row;
};

// Stable, by key; as many passes as the keys differ in.
void radix_sort(std::vector<Keyed>& items, std::vector<Keyed>& spare) {
  constexpr int kBits = 11;
  constexpr size_t kBuckets = size_t{1} << kBits;
  uint64_t all = 0, none = ~uint64_t{0};
  for (const Keyed& item : items) {
    all |= item.key;
    none &= item.key;
  }
  const uint64_t differ = all & ~none;
  spare.resize(items.size());
  for (int shift = 0; shift < 64; shift += kBits) {
    if ((differ >> shift & (kBuckets - 1)) == 0) continue;
    std::array<size_t, kBuckets + 1> start{};
    for (const Keyed& item : items) ++start[(item.key >> shift & (kBuckets - 1)) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    for (const Keyed& item : items) spare[start[item.key >> shift & (kBuckets - 1)]++] = item;
    items.swap(spare);
  }
}

// Where each text stands among the others.
std::vector<uint32_t> text_ranks(const RowTable& table, Column column) {
  const size_t count = table.text_keys(column);
  std::vector<std::string> texts(count);
  for (uint32_t key = 0; key < count; ++key) texts[key] = table.text_of_key(key, column);
  std::vector<uint32_t> order(count), rank(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return texts[a] < texts[b]; });
  for (uint32_t i = 0, at = 0; i < count; ++i) {
    if (i != 0 && texts[order[i]] != texts[order[i - 1]]) at = i;
    rank[order[i]] = at;
  }
  return rank;
}

// A row's key in one column: the smaller, the further up.
class KeyOf {
 public:
  KeyOf(const RowTable& table, const SortBy& by) : table_(table), by_(by) {
    const ColumnInfo* info = find_column_info(table.kind, by.column);
    if (info != nullptr && info->text()) ranks_ = text_ranks(table, by.column);
  }
  uint64_t operator()(uint32_t row) const {
    if (!ranks_.empty()) {
      const uint64_t key = ranks_[table_.text_key(row, by_.column)];
      return by_.descending ? ~key : key;
    }
    const auto value = table_.number(row, by_.column);
    // Signed as unsigned; what is unknown comes last, either way.
    if (!value) return ~uint64_t{0};
    const uint64_t key = static_cast<uint64_t>(*value) ^ uint64_t { 1 } << 63;
    return by_.descending ? ~key : key;
  }

 private:
  static const ColumnInfo* find_column_info(RowKind kind, Column column) {
    for (const ColumnInfo& known : columns_of(kind)) {
      if (known.column == column) return &known;
    }
    return nullptr;
  }

  const RowTable& table_;
  SortBy by_;
  std::vector<uint32_t> ranks_;  // of texts
};

void fill_keys(const RowTable& table, const SortBy& by, std::vector<Keyed>& items) {
  const KeyOf key_of(table, by);
  for (Keyed& item : items) item.key = key_of(item.row);
}

constexpr size_t kFewRows = 4096;  // sorted at once

// Drops the rows that lie before or after the page, and makes `offset` count from those that stay.
// Rows with equal keys stay together.
void narrow(std::vector<Keyed>& items, size_t& offset, size_t limit) {
  constexpr int kBits = 16;
  while (items.size() > limit + kFewRows) {
    uint64_t least = ~uint64_t{0}, most = 0;
    for (const Keyed& item : items) {
      least = std::min(least, item.key);
      // The unknown, far above all others, would make the parts too wide.
      if (item.key != ~uint64_t{0}) most = std::max(most, item.key);
    }
    if (least >= most) return;  // all alike, or some unknown
    const int width = std::bit_width(most - least);
    const int shift = std::max(0, width - kBits);
    const size_t parts = ((most - least) >> shift) + 2;  // the last for the unknown
    const auto part_of = [&](uint64_t key) {
      return key > most ? parts - 1 : static_cast<size_t>((key - least) >> shift);
    };
    std::vector<size_t> counts(parts);
    for (const Keyed& item : items) ++counts[part_of(item.key)];
    size_t first = 0, before = 0;
    while (before + counts[first] <= offset) before += counts[first++];
    size_t last = first, until = before + counts[first];
    while (until < offset + limit) until += counts[++last];
    const size_t size = items.size();
    std::erase_if(items, [&](const Keyed& item) {
      const size_t part = part_of(item.key);
      return part < first || part > last;
    });
    offset -= before;
    // Not finer than single keys, or nothing won.
    if (shift == 0 || items.size() == size) return;
  }
}

// Rows that may be on the page, in their order, each with its key; `offset` then counts from the
// first of them. Each key is found once: a sample tells between which two the page's must lie.
// Where the sample misleads, all rows are given.
// `last_column`: rows that are alike in it stay in their order, so that of many alike only those up
// to the page's end count.
std::vector<Keyed> near_page(const std::vector<uint32_t>& rows, const KeyOf& key_of, size_t& offset,
                             size_t limit, bool last_column) {
  constexpr size_t kSample = 1 << 16;
  constexpr size_t kMargin = 1200;  // four deviations of a rank in it, and some
  std::vector<Keyed> items;
  uint64_t low = 0, high = ~uint64_t{0};
  if (rows.size() > 4 * kSample) {
    const size_t stride = rows.size() / kSample;
    std::vector<uint64_t> sample;
    uint32_t random = 1;  // numerical recipes' generator: rows may well have a period of their own
    for (size_t at = 0; at + stride <= rows.size(); at += stride) {
      random = random * 1'664'525 + 1'013'904'223;
      sample.push_back(key_of(rows[at + (random >> 8) % stride]));
    }
    std::sort(sample.begin(), sample.end());
    const size_t first = offset / stride, last = (offset + limit) / stride;
    if (first > kMargin) low = sample[first - kMargin];
    if (last + kMargin < sample.size()) high = sample[last + kMargin];
    if (last_column && sample.front() == high && low == 0) low = high;
    if (last_column && sample.front() == sample.back()) low = high = sample.front();
  }
  const size_t enough = last_column && low == high ? offset + limit : rows.size();
  size_t before = 0;
  for (const uint32_t row : rows) {
    const uint64_t key = key_of(row);
    before += key < low ? 1 : 0;
    if (key >= low && key <= high && items.size() < enough) items.push_back({key, row});
  }
  if (before <= offset && before + items.size() >= offset + limit) {
    offset -= before;
    return items;
  }
  items.clear();
  for (const uint32_t row : rows) items.push_back({key_of(row), row});
  return items;
}

}  // namespace

std::span<const ColumnInfo> columns_of(RowKind kind) {
  if (kind == RowKind::kBlocks) return kBlockColumns;
  return kEventColumns;
}

const ColumnInfo* find_column(RowKind kind, std::string_view name) {
  for (const ColumnInfo& info : columns_of(kind)) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::optional<int64_t> RowTable::number(uint32_t row, Column column) const {
  const uint32_t block = block_of(row);
  switch (column) {
    case Column::kBlock:
      return block;
    case Column::kEvent:
      return row;
    case Column::kTime:
      return some(pool->time[row] + static_cast<uint64_t>(shift));
    case Column::kAddress:
      return some(pool->address[block]);
    case Column::kSize:
      return some(pool->size(block));
    case Column::kBegin:
      return some(pool->begin_time(block) + static_cast<uint64_t>(shift));
    case Column::kEnd:
      if (const auto end = pool->end_time(block)) return some(*end + static_cast<uint64_t>(shift));
      return std::nullopt;
    case Column::kLifetime:
      if (const auto end = pool->end_time(block)) return some(*end - pool->begin_time(block));
      return std::nullopt;
    case Column::kStep:
      if (input->steps.count() == 0) return std::nullopt;
      return input->step_at(kind == RowKind::kEvents ? pool->time[row] : pool->begin_time(block));
    case Column::kEndStep:
      if (input->steps.count() == 0) return std::nullopt;
      if (const auto end = pool->end_time(block)) return input->step_at(*end);
      return std::nullopt;
    case Column::kAllocated:
      return some(pool->bytes_in(row + 1));
    case Column::kSiteId:
      return input->site_of_stack(pool->stack[block]);
    case Column::kStackId:
      return pool->stack[block];
    default:
      return std::nullopt;
  }
}

uint32_t RowTable::text_key(uint32_t row, Column column) const {
  const uint32_t block = block_of(row);
  switch (column) {
    case Column::kKind:
      if (kind == RowKind::kEvents && (pool->event[row] & kFreeBit) != 0) return 1;
      return (pool->sized[block] & kSeeded) != 0 ? 2 : 0;
    case Column::kState:
      if ((pool->sized[block] & kFateUnknown) != 0) return 2;
      return pool->free_event[block] == kAlive ? 0 : 1;
    case Column::kOwner:
      return pool->owner[block];
    case Column::kSite:
    case Column::kFunction:
      return input->site_of_stack(pool->stack[block]);
    case Column::kThread:
      if (kind == RowKind::kEvents && (pool->event[row] & kFreeBit) != 0) {
        return pool->free_thread[block];
      }
      return pool->thread[block];
    default:
      return 0;
  }
}

size_t RowTable::text_keys(Column column) const {
  switch (column) {
    case Column::kKind:
      return kKinds.size();
    case Column::kState:
      return kStates.size();
    case Column::kOwner:
      return input->owners.size();
    case Column::kSite:
    case Column::kFunction:
      return input->site_count();
    case Column::kThread:
      return 65536;
    default:
      return 1;
  }
}

std::string RowTable::text_of_key(uint32_t key, Column column) const {
  switch (column) {
    case Column::kKind:
      return std::string(kKinds[key]);
    case Column::kState:
      return std::string(kStates[key]);
    case Column::kOwner:
      return input->owners[key];
    case Column::kSite:
      return key == 0 ? "" : input->site_place(key);
    case Column::kFunction:
      return input->site(key).function;
    case Column::kThread:
      return input->thread_name(key);
    default:
      return "";
  }
}

RowSet filter_rows(const RowTable& table, const std::vector<RowFilter>& filters) {
  RowSet result;
  const uint32_t end = table.first() + table.count();
  result.rows.reserve(filters.empty() ? table.count() : 0);
  for (uint32_t row = table.first(); row < end; ++row) {
    if (!table.exists(row)) continue;
    const bool wanted = std::all_of(filters.begin(), filters.end(),
                                    [row](const RowFilter& filter) { return filter(row); });
    if (!wanted) continue;
    result.rows.push_back(row);
    result.bytes += table.pool->size(table.block_of(row));
  }
  return result;
}

RowSet select_rows(const RowTable& table, const RowQuery& query) {
  RowSet result = filter_rows(table, query.filters);
  if (query.sort.empty()) return result;
  std::vector<Keyed> items(result.rows.size()), spare;
  for (size_t i = 0; i < items.size(); ++i) items[i] = {0, result.rows[i]};
  for (size_t turn = query.sort.size(); turn-- > 0;) {
    fill_keys(table, query.sort[turn], items);
    radix_sort(items, spare);
  }
  for (size_t i = 0; i < items.size(); ++i) result.rows[i] = items[i].row;
  return result;
}

std::vector<uint32_t> page_of(const RowTable& table, const std::vector<uint32_t>& rows,
                              const std::vector<SortBy>& sort, size_t offset, size_t limit) {
  offset = std::min(offset, rows.size());
  limit = std::min(limit, rows.size() - offset);
  std::vector<Keyed> items;
  if (sort.empty() || limit == 0) {
    return {rows.begin() + static_cast<ptrdiff_t>(offset),
            rows.begin() + static_cast<ptrdiff_t>(offset + limit)};
  }
  // Column by column: what is left are the rows with the keys that the page has.
  for (const SortBy& by : sort) {
    if (&by == &sort.front()) {
      items = near_page(rows, KeyOf(table, by), offset, limit, sort.size() == 1);
    } else {
      fill_keys(table, by, items);
    }
    narrow(items, offset, limit);
    // The next column decides only among rows that are alike in this one.
    const bool alike = std::all_of(items.begin(), items.end(), [&](const Keyed& item) {
      return item.key == items.front().key;
    });
    if (!alike || items.size() <= limit + kFewRows) break;
  }
  // The rest is small, or all alike in the columns so far: sorted as a whole. It is in the order of
  // its numbers, as `rows` is.
  std::vector<Keyed> spare;
  for (size_t turn = sort.size(); turn-- > 0;) {
    fill_keys(table, sort[turn], items);
    radix_sort(items, spare);
  }
  std::vector<uint32_t> page;
  for (size_t i = offset; i < offset + limit && i < items.size(); ++i) page.push_back(items[i].row);
  return page;
}

}  // namespace memscope::view
