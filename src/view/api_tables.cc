// The tables: blocks and events with filters, orders and downloads; sites.
#include <algorithm>
#include <memory>

#include "view/api.h"
#include "view/rows.h"
#include "view/text.h"

namespace memscope::view {
namespace {

constexpr size_t kPieceRows = 2000;  // of a download, at a time

struct RowRequest {
  PoolAt at;
  RowTable table;
  RowQuery query;
  std::string key;
};

RowRequest row_request(const ViewState& state, Params& params, RowKind kind) {
  RowRequest request;
  request.at = pool_of(state, params);
  if (params.bad()) return request;
  const PoolAt& at = request.at;
  request.table = {.kind = kind, .input = at.input, .pool = at.pool, .shift = at.shift};
  const std::string where = params.text("where"), sort = params.text("sort");
  FilterContext context;
  context.verdicts = &state.verdicts[at.index];
  context.colouring = [&state, index = at.index](ColourBy by) {
    return &state.colouring(index, by);
  };
  auto filters = filters_from_json(request.table, where, context);
  auto order = sort_from_text(kind, sort);
  if (!filters) params.refuse("where", filters.error().message);
  if (!order) params.refuse("sort", order.error().message);
  if (params.bad()) return request;
  request.query = {std::move(filters).value(), std::move(order).value()};
  request.key = (kind == RowKind::kBlocks ? "b" : "e") + sort + '\n' + where;
  // Verdicts may change while the pool stays.
  if (where.find("verdict") != std::string::npos) {
    request.key += std::to_string(std::hash<std::string>()(state.diagnosis.dump()));
  }
  return request;
}

// All rows of the request, sorted.
std::shared_ptr<const RowSet> rows_of(const RowRequest& request) {
  return request.at.views->rows(request.key,
                                [&] { return select_rows(request.table, request.query); });
}

// All rows of the request in the order of their numbers.
std::shared_ptr<const RowSet> unsorted_rows_of(const RowRequest& request) {
  return request.at.views->rows(request.key.substr(request.key.find('\n')) + request.key.front(),
                                [&] { return filter_rows(request.table, request.query.filters); });
}

Json cell_json(const RowTable& table, uint32_t row, const ColumnInfo& info) {
  if (info.text()) {
    std::string text = table.text(row, info.column);
    return text.empty() ? Json(nullptr) : Json(cut(text));
  }
  const auto number = table.number(row, info.column);
  if (!number) return nullptr;
  if (info.type == "address") return address_text(static_cast<uint64_t>(*number));
  return *number;
}

// RFC 4180; what a spreadsheet would take for a formula is made harmless.
void append_csv(std::string_view text, std::string& out) {
  const bool formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  if (text.find_first_of(",\"\r\n") == std::string_view::npos && !formula) {
    out += text;
    return;
  }
  out += '"';
  if (formula) out += '\'';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void append_csv_row(const RowTable& table, uint32_t row, std::string& out) {
  bool first = true;
  for (const ColumnInfo& info : columns_of(table.kind)) {
    if (!first) out += ',';
    first = false;
    if (info.text()) {
      append_csv(table.text(row, info.column), out);
    } else if (const auto number = table.number(row, info.column)) {
      out += info.type == "address" ? address_text(static_cast<uint64_t>(*number))
                                    : std::to_string(*number);
    }
  }
  out += "\r\n";
}

void append_json_row(const RowTable& table, uint32_t row, std::string& out) {
  Json object = Json::object();
  for (const ColumnInfo& info : columns_of(table.kind)) {
    object[std::string(info.name)] = cell_json(table, row, info);
  }
  out += object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Answer download(const RowRequest& request, bool csv) {
  struct Progress {
    RowTable table;
    std::shared_ptr<const RowSet> rows;
    std::shared_ptr<const PoolViews> views;
    size_t at = 0;
    bool begun = false;
  };
  auto progress = std::make_shared<Progress>();
  progress->table = request.table;
  progress->rows = rows_of(request);
  Answer answer{.type = csv ? "text/csv; charset=utf-8" : "application/json"};
  answer.file_name = std::string(request.table.kind == RowKind::kBlocks ? "blocks" : "events") +
                     (csv ? ".csv" : ".json");
  answer.more = [progress, csv](std::string& piece) {
    const auto& rows = progress->rows->rows;
    const RowTable& table = progress->table;
    if (!progress->begun) {
      progress->begun = true;
      bool first = true;
      for (const ColumnInfo& info : columns_of(table.kind)) {
        if (csv) piece += (first ? "" : ",") + std::string(info.name);
        first = false;
      }
      piece += csv ? "\r\n" : "[";
    }
    const size_t end = std::min(rows.size(), progress->at + kPieceRows);
    for (; progress->at < end; ++progress->at) {
      if (csv) {
        append_csv_row(table, rows[progress->at], piece);
      } else {
        piece += progress->at == 0 ? "\n" : ",\n";
        append_json_row(table, rows[progress->at], piece);
      }
    }
    if (progress->at < rows.size()) return true;
    if (!csv) piece += "\n]\n";
    return false;
  };
  return answer;
}

Answer table_query(const ViewState& state, Params& params, RowKind kind) {
  const RowRequest request = row_request(state, params, kind);
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  const auto offset = static_cast<size_t>(params.integer("offset", 0, kMost, 0));
  const auto limit = static_cast<size_t>(params.integer("limit", 0, 1000, 100));
  const std::string format = params.text("format", "page");
  if (format != "page" && format != "csv" && format != "json") {
    params.refuse("format", "format is csv or json");
  }
  if (params.bad()) return {};
  if (format != "page") return download(request, format == "csv");
  const auto set = unsorted_rows_of(request);
  const auto page = page_of(request.table, set->rows, request.query.sort, offset, limit);
  Json rows = Json::array();
  for (const uint32_t number : page) rows.push_back(row_json(request.table, number));
  return json_answer(Json{{"total", set->rows.size()},
                          {"all", request.table.count()},
                          {"offset", offset},
                          {"columns", columns_json(kind)},
                          {"rows", std::move(rows)},
                          {"sum", Json{{"size", set->bytes}}}});
}

// -- sites ----------------------------------------------------------------------------------------

struct SiteRow {
  uint32_t site = 0;
  const SiteHistory* history = nullptr;
  SiteNow now;
  int64_t verdict = -1;

  double lifetime() const {
    return history->freed == 0 ? -1 : history->lifetimes / static_cast<double>(history->freed);
  }
};

using Less = std::function<bool(const SiteRow&, const SiteRow&)>;

Less site_order(const InputIndex& input, const std::string& column) {
  const auto by = [](auto value) -> Less {
    return [value](const SiteRow& a, const SiteRow& b) { return value(a) < value(b); };
  };
  if (column == "live_bytes") return by([](const SiteRow& r) { return r.now.live_bytes; });
  if (column == "live_blocks") return by([](const SiteRow& r) { return r.now.live_blocks; });
  if (column == "peak_bytes") return by([](const SiteRow& r) { return r.history->peak; });
  if (column == "allocs") return by([](const SiteRow& r) { return r.now.allocs; });
  if (column == "alloc_bytes") return by([](const SiteRow& r) { return r.now.alloc_bytes; });
  if (column == "bytes_per_step") {
    return by([](const SiteRow& r) { return r.history->bytes_per_step.value_or(-1e300); });
  }
  if (column == "lifetime_ns") return by([](const SiteRow& r) { return r.lifetime(); });
  if (column == "place") {
    return by([&input](const SiteRow& r) { return std::string_view(input.site_place(r.site)); });
  }
  if (column == "function") {
    return by([&input](const SiteRow& r) { return std::string_view(input.site(r.site).function); });
  }
  return nullptr;
}

bool site_matches(const InputIndex& input, uint32_t site, std::string_view wanted) {
  const auto has = [&](std::string_view text) {
    return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), [](char a, char b) {
             const auto low = [](char c) {
               return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
             };
             return low(a) == low(b);
           }) != text.end();
  };
  const SiteFrame& frame = input.site(site);
  return has(input.site_place(site)) || has(frame.function) || has(frame.text.value_or(""));
}

Json site_row_json(const PoolAt& at, const SiteRow& row) {
  const InputIndex& input = *at.input;
  const SiteFrame& frame = input.site(row.site);
  const SiteHistory& history = *row.history;
  Json spark = Json::array();
  for (const float value : history.spark) spark.push_back(static_cast<int64_t>(value));
  const auto text = [](const std::optional<std::string>& value) {
    return value ? Json(cut(*value)) : Json(nullptr);
  };
  return Json{
      {"site", row.site},
      {"place", cut(input.site_place(row.site))},
      {"function", cut(frame.function)},
      {"text", text(frame.text)},
      {"file", text(frame.file)},
      {"line", frame.line ? Json(*frame.line) : Json(nullptr)},
      {"user", frame.user},
      {"live_bytes", row.now.live_bytes},
      {"live_blocks", row.now.live_blocks},
      {"peak_bytes", history.peak},
      {"peak_time", at.out(history.peak_time)},
      {"allocs", row.now.allocs},
      {"alloc_bytes", row.now.alloc_bytes},
      {"bytes_per_step", history.bytes_per_step ? Json(*history.bytes_per_step) : Json(nullptr)},
      {"lifetime_ns", history.freed == 0 ? Json(nullptr) : Json(row.lifetime())},
      {"owner", history.owner == 0 ? Json(nullptr) : Json(cut(input.owners[history.owner]))},
      {"verdict", row.verdict < 0 ? Json(nullptr) : Json(row.verdict)},
      {"spark", std::move(spark)}};
}

}  // namespace

Json columns_json(RowKind kind) {
  Json columns = Json::array();
  for (const ColumnInfo& info : columns_of(kind)) {
    columns.push_back(Json{{"name", std::string(info.name)}, {"type", std::string(info.type)}});
  }
  return columns;
}

Json row_json(const RowTable& table, uint32_t row) {
  Json cells = Json::array();
  for (const ColumnInfo& info : columns_of(table.kind)) {
    cells.push_back(cell_json(table, row, info));
  }
  return cells;
}

Answer blocks_query(const ViewState& state, Params& params) {
  return table_query(state, params, RowKind::kBlocks);
}

Answer events_query(const ViewState& state, Params& params) {
  return table_query(state, params, RowKind::kEvents);
}

Answer index_query(const ViewState& state, Params& params) {
  const std::string table = params.text("table", "blocks");
  if (table != "blocks" && table != "events") params.refuse("table", "table is blocks or events");
  const RowKind kind = table == "blocks" ? RowKind::kBlocks : RowKind::kEvents;
  const RowRequest request = row_request(state, params, kind);
  const int64_t wanted = params.integer(kind == RowKind::kBlocks ? "block" : "event", 0, kAlive);
  if (params.bad()) return {};
  const auto set = rows_of(request);
  const auto at = std::find(set->rows.begin(), set->rows.end(), static_cast<uint32_t>(wanted));
  return json_answer(
      Json{{"offset", at == set->rows.end() ? Json(nullptr) : Json(at - set->rows.begin())}});
}

Answer sites_query(const ViewState& state, Params& params) {
  const PoolAt at = pool_of(state, params);
  if (params.bad()) return {};
  const int64_t t0 = params.time("t0", at.out(0)), t1 = params.time("t1", at.end() + 1);
  std::string column = params.text("sort", "live_bytes:desc");
  bool descending = false;
  if (const size_t colon = column.find(':'); colon != std::string::npos) {
    descending = column.substr(colon + 1) == "desc";
    column.resize(colon);
  }
  Less less = site_order(*at.input, column);
  if (!less) params.refuse("sort", "no such column to sort by");
  const auto offset = static_cast<size_t>(params.integer("offset", 0, 1 << 30, 0));
  const auto limit = static_cast<size_t>(params.integer("limit", 1, 1000, 200));
  const std::string wanted = params.text("find");
  if (params.bad()) return {};
  const auto known = at.views->sites(state.warmup);
  const SiteHistories& histories = *known;
  const auto now = sites_now(*at.input, *at.pool, at.in(t0), at.in(t1));
  std::vector<SiteRow> rows;
  for (size_t i = 0; i < histories.sites.size(); ++i) {
    const uint32_t site = histories.sites[i];
    if (!wanted.empty() && !site_matches(*at.input, site, wanted)) continue;
    SiteRow row{.site = site, .history = &histories.of_site[i], .now = now[site]};
    for (const VerdictBlocks& verdict : state.verdicts[at.index]) {
      const bool accused =
          std::find(verdict.sites.begin(), verdict.sites.end(), site) != verdict.sites.end();
      if (accused && row.verdict < 0) row.verdict = verdict.verdict;
    }
    rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const SiteRow& a, const SiteRow& b) {
    return descending ? less(b, a) : less(a, b);
  });
  Json list = Json::array();
  for (size_t i = offset; i < rows.size() && i - offset < limit; ++i) {
    list.push_back(site_row_json(at, rows[i]));
  }
  return json_answer(Json{{"total", rows.size()},
                          {"step_source", std::string(steps_from_name(at.input->steps.from))},
                          {"points", kSparkPoints},
                          {"rows", std::move(list)}});
}

}  // namespace memscope::view
