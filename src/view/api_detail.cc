// Queries about one thing: a block, a stack, lines of a source, a name.
#include <algorithm>
#include <charconv>

#include "analysis/statement.h"
#include "replay/order.h"
#include "view/api.h"
#include "view/name_table.h"
#include "view/text.h"

namespace memscope::view {
namespace {

constexpr size_t kMaxFrames = 1000;
constexpr size_t kNeighbours = 8;
constexpr size_t kMaxResults = 100;

Json stack_json(const InputIndex& input, uint32_t stack) {
  Json frames = Json::array();
  for (const SiteFrame& frame : input.describe_stack(stack, kMaxFrames)) {
    frames.push_back(frame_json(frame, kWholeName));
  }
  return frames;
}

// The user's own innermost frame: the one to open.
Json user_frame(const Json& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames[i]["user"].get<bool>()) return i;
  }
  return nullptr;
}

// Live blocks next to an address, nearest first.
Json neighbours_json(const PoolAt& at, uint32_t block, uint32_t state) {
  const PoolIndex& pool = *at.pool;
  const uint64_t address = pool.address[block];
  std::vector<uint32_t> below, above;
  const auto nearer_below = [&](uint32_t a, uint32_t b) {
    return pool.address[a] > pool.address[b];
  };
  const auto nearer_above = [&](uint32_t a, uint32_t b) {
    return pool.address[a] < pool.address[b];
  };
  const auto keep = [](std::vector<uint32_t>& list, uint32_t other, auto nearer) {
    if (list.size() == kNeighbours && !nearer(other, list.back())) return;
    list.insert(std::upper_bound(list.begin(), list.end(), other, nearer), other);
    if (list.size() > kNeighbours) list.pop_back();
  };
  const uint32_t blocks = pool.blocks_in(state);
  for (uint32_t other = 1; other <= blocks; ++other) {
    if (pool.free_event[other] < state || other == block) continue;
    if (pool.address[other] < address) {
      keep(below, other, nearer_below);
    } else {
      keep(above, other, nearer_above);
    }
  }
  const auto list = [&](const std::vector<uint32_t>& blocks_near, bool under) {
    Json result = Json::array();
    uint64_t edge = under ? address : address + pool.size(block);
    for (const uint32_t other : blocks_near) {
      const uint64_t from = pool.address[other], to = from + pool.size(other);
      const int64_t gap =
          under ? static_cast<int64_t>(edge - to) : static_cast<int64_t>(from - edge);
      result.push_back(Json{{"block", other},
                            {"address", address_text(from)},
                            {"size", pool.size(other)},
                            {"gap", gap}});
      edge = under ? from : to;
    }
    return result;
  };
  return Json{{"t", at.out(pool.time_of_state(state))},
              {"below", list(below, true)},
              {"above", list(above, false)}};
}

Json holders_json(const PoolAt& at, uint32_t block) {
  constexpr size_t kMost = 20;
  Json list = Json::array();
  const uint64_t birth = at.input->origin + at.pool->begin_time(block);
  for (const HolderSeen& holder : at.input->side.holders) {
    if (holder.addr != at.pool->address[block] || at.pool->free_event[block] != kAlive) continue;
    if (holder.birth != 0 &&
        std::max(holder.birth, birth) - std::min(holder.birth, birth) > kClockSkewNs) {
      continue;
    }
    Json path = Json::array();
    const auto parsed = nlohmann::json::parse(holder.path, nullptr, false);
    if (parsed.is_array()) {
      for (const auto& step : parsed) {
        if (!step.is_object() || path.size() == 100) continue;
        const auto text = [&](const char* key) {
          const auto found = step.find(key);
          return found != step.end() && found->is_string() ? cut(found->get<std::string>()) : "";
        };
        const auto length = step.find("len");
        path.push_back(Json{{"kind", text("kind")},
                            {"name", text("name")},
                            {"type", text("type")},
                            {"len", length != step.end() && length->is_number_integer()
                                        ? Json(length->get<int64_t>())
                                        : Json(nullptr)}});
      }
    }
    list.push_back(Json{{"root", cut(holder.root)},
                        {"text", cut(holder.text, kWholeName)},
                        {"file", holder.file.empty() ? Json(nullptr) : Json(cut(holder.file))},
                        {"line", holder.line == 0 ? Json(nullptr) : Json(holder.line)},
                        {"function", cut(holder.function)},
                        {"path", std::move(path)}});
    if (list.size() == kMost) break;
  }
  return list;
}

bool has(std::string_view text, std::string_view lowered) {
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  return std::search(text.begin(), text.end(), lowered.begin(), lowered.end(), same) != text.end();
}

// Puts a block's accesses among its events, in time; of many the first and the last. What they come
// to: null where the input tells of none.
Json add_accesses(const PoolAt& at, uint32_t block, Json& events) {
  constexpr size_t kShown = 100;  // at either end
  const PoolIndex& pool = *at.pool;
  std::vector<size_t> all;
  pool.for_each_access(block, [&](size_t access) { all.push_back(access); });
  if (pool.access_time.empty()) return nullptr;
  uint64_t idle = 0, before = pool.begin_time(block);
  for (const size_t access : all) {
    idle = std::max(idle, pool.access_time[access] - before);
    before = pool.access_time[access];
  }
  if (const auto end = pool.end_time(block)) idle = std::max(idle, *end - std::min(before, *end));
  Json rows = Json::array();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all.size() > 2 * kShown && i == kShown) {
      i = all.size() - kShown;
      rows.push_back(Json{{"kind", "more"},
                          {"time", nullptr},
                          {"thread", nullptr},
                          {"text", std::to_string(all.size() - 2 * kShown)}});
    }
    const uint32_t what = pool.access_what[all[i]];
    const uint32_t name = what & (PoolIndex::kRead - 1);
    rows.push_back(
        Json{{"kind", (what & PoolIndex::kRead) != 0      ? "read"
                      : (what & PoolIndex::kWritten) != 0 ? "write"
                                                          : "access"},
             {"time", at.out(pool.access_time[all[i]])},
             {"thread", nullptr},
             {"text", name < at.input->names.size() ? Json(cut(at.input->names[name])) : Json()}});
  }
  // Before the block's end.
  const bool over = !events.empty() && events.back()["kind"] == "free";
  events.insert(over ? events.end() - 1 : events.end(), rows.begin(), rows.end());
  const auto time = [&](size_t access) { return at.out(pool.access_time[access]); };
  return Json{{"count", all.size()},
              {"first", all.empty() ? Json(nullptr) : Json(time(all.front()))},
              {"last", all.empty() ? Json(nullptr) : Json(time(all.back()))},
              {"longest_idle", idle}};
}

size_t input_of(const ViewState& state, Params& params) {
  const int64_t number = params.integer("input", 0, 1 << 20);
  if (static_cast<size_t>(number) < state.inputs.size()) return static_cast<size_t>(number);
  params.refuse("input", "no such input");
  return 0;
}

Json result_json(const char* kind, const std::string& text) {
  return Json{{"kind", kind},    {"pool", nullptr},  {"text", cut(text)}, {"detail", nullptr},
              {"site", nullptr}, {"block", nullptr}, {"time", nullptr},   {"count", nullptr}};
}

// Blocks that contained an address, the newest first.
void search_address(const ViewState& state, uint64_t address, Json& results) {
  for (size_t number = 0; number < state.pools.size(); ++number) {
    const PoolIndex& pool = state.pools[number].views->pool();
    const int64_t shift = state.shift(state.pools[number].input);
    size_t found = 0;
    for (uint32_t block = pool.blocks(); block > 0 && found < 20; --block) {
      if (address < pool.address[block] || address - pool.address[block] >= pool.size(block)) {
        continue;
      }
      ++found;
      Json result = result_json("block", address_text(pool.address[block]));
      result["pool"] = number;
      result["block"] = block;
      result["detail"] = bytes_text(pool.size(block));
      result["time"] = static_cast<int64_t>(pool.begin_time(block)) + shift;
      results.push_back(std::move(result));
      if (results.size() >= kMaxResults) return;
    }
  }
}

// Names of one input; sites and owners with the pool in which they have most blocks are left to the
// page, which knows the pool it shows.
void search_names(const ViewState& state, size_t number, std::optional<size_t> pool,
                  const std::string& wanted, Json& results) {
  const InputIndex& input = *state.inputs[number];
  const auto add = [&](Json result) {
    if (pool) result["pool"] = *pool;
    if (results.size() < kMaxResults) results.push_back(std::move(result));
  };
  for (uint32_t site = 1; site < input.site_count(); ++site) {
    const SiteFrame& frame = input.site(site);
    if (!has(input.site_place(site), wanted) && !has(frame.function, wanted) &&
        !has(frame.text.value_or(""), wanted)) {
      continue;
    }
    Json result = result_json("site", input.site_place(site));
    result["detail"] = cut(frame.function);
    result["site"] = site;
    add(std::move(result));
  }
  for (uint32_t owner = 1; owner < input.owners.size(); ++owner) {
    if (has(input.owners[owner], wanted)) add(result_json("owner", input.owners[owner]));
  }
  for (const MarkSeen& mark : input.marks) {
    if (results.size() >= kMaxResults) return;
    if (!has(input.names[mark.text], wanted)) continue;
    Json result = result_json("mark", input.names[mark.text]);
    result["time"] = static_cast<int64_t>(mark.begin) + state.shift(number);
    add(std::move(result));
  }
  for (uint32_t thread = 1; thread < input.threads.size(); ++thread) {
    const std::string name = input.thread_name(thread);
    if (has(name, wanted)) add(result_json("thread", name));
  }
  // Functions anywhere on a stack, each name once.
  const auto functions = [&](const StringTable& strings) {
    for (uint32_t string = 1; string < strings.size() && results.size() < kMaxResults; ++string) {
      const std::string_view text = strings.text(StringId(string));
      if (has(text, wanted)) add(result_json("function", std::string(text)));
    }
  };
  functions(input.strings);
  if (input.frame_names() != nullptr) functions(input.frame_names()->texts());
}

}  // namespace

Answer block_query(const ViewState& state, Params& params) {
  const PoolAt at = pool_of(state, params);
  if (params.bad()) return {};
  const auto number = params.integer("block", 1, kAlive);
  if (!params.bad() && number > at.pool->blocks())
    return error_answer(404, "no such block", "block");
  if (params.bad()) return {};
  const PoolIndex& pool = *at.pool;
  const auto block = static_cast<uint32_t>(number);
  uint32_t moment = pool.alloc_event[block] + 1;
  if (params.has("t")) {
    const uint32_t wanted = pool.state_at(at.in(params.time("t")));
    if (pool.alive(block, wanted)) moment = wanted;
  }
  if (params.bad()) return {};
  Json json = block_json(at, block, kWholeName);
  Json frames = stack_json(*at.input, pool.stack[block]);
  json["user_frame"] = user_frame(frames);
  json["stack"] = std::move(frames);
  json["stack_id"] = pool.stack[block];
  const uint32_t thread = pool.thread[block];
  const std::string free_thread = at.input->thread_name(pool.free_thread[block]);
  json["thread"] =
      Json{{"id", thread},
           {"tid", thread < at.input->threads.size() ? at.input->threads[thread].tid : 0},
           {"name", cut(at.input->thread_name(thread), kWholeName)}};
  json["free_thread"] = free_thread.empty() ? Json(nullptr) : Json(cut(free_thread, kWholeName));
  json["allocated_before"] = pool.bytes_in(pool.alloc_event[block]);
  json["event"] = pool.alloc_event[block];
  const bool alive = pool.free_event[block] == kAlive;
  json["free_event"] = alive ? Json(nullptr) : Json(pool.free_event[block]);
  const bool seeded = (pool.sized[block] & kSeeded) != 0;
  Json events = Json::array();
  events.push_back(Json{{"kind", seeded ? "seed" : "alloc"},
                        {"time", at.out(pool.begin_time(block))},
                        {"thread", cut(at.input->thread_name(thread))},
                        {"text", nullptr}});
  if (pool.owner[block] != 0) {
    events.push_back(Json{{"kind", "owner"},
                          {"time", nullptr},
                          {"thread", nullptr},
                          {"text", cut(at.input->owners[pool.owner[block]], kWholeName)}});
  }
  if (!alive) {
    const bool unseen = (pool.sized[block] & kEndUnseen) != 0;
    events.push_back(
        Json{{"kind", "free"},
             {"time", at.out(*pool.end_time(block))},
             {"thread", cut(free_thread)},
             {"text", unseen ? Json("its end was not seen: its address was in use again, or it was "
                                    "gone when recording went on")
                             : Json(nullptr)}});
  }
  json["accesses"] = add_accesses(at, block, events);
  json["events"] = std::move(events);
  json["neighbours"] = neighbours_json(at, block, moment);
  json["holders"] = holders_json(at, block);
  const uint32_t site = at.input->site_of_stack(pool.stack[block]);
  uint64_t live = 0, live_bytes = 0, all = 0;
  for (uint32_t other = 1; other <= pool.blocks(); ++other) {
    if (at.input->site_of_stack(pool.stack[other]) != site) continue;
    ++all;
    if (pool.free_event[other] != kAlive) continue;
    ++live;
    live_bytes += pool.size(other);
  }
  json["same_site"] = Json{{"live_blocks", live}, {"live_bytes", live_bytes}, {"blocks", all}};
  return json_answer(json);
}

Answer stack_query(const ViewState& state, Params& params) {
  const size_t number = input_of(state, params);
  const int64_t stack = params.integer("stack", 0, std::numeric_limits<uint32_t>::max());
  if (params.bad()) return {};
  const InputIndex& input = *state.inputs[number];
  if (static_cast<size_t>(stack) >= input.stacks.size()) {
    return error_answer(404, "no such stack", "stack");
  }
  return json_answer(Json{{"frames", stack_json(input, static_cast<uint32_t>(stack))}});
}

Answer source_query(const ViewState& state, Params& params) {
  const size_t number = input_of(state, params);
  const std::string file = params.text("file");
  const int64_t line = params.integer("line", 1, std::numeric_limits<int32_t>::max());
  const int64_t around = params.integer("around", 0, 2000, 30);
  if (params.bad()) return {};
  const InputIndex& input = *state.inputs[number];
  const auto found = input.side.sources.find(file);
  if (found == input.side.sources.end() ||
      (found->second.flags & SourceText::kStatementsOnly) != 0) {
    return error_answer(404, "the trace holds no copy of this file", "file");
  }
  const SourceText& source = found->second;
  const Statements statements(source.text);
  const auto wanted = static_cast<uint32_t>(line);
  if (wanted > statements.line_count()) return error_answer(404, "the file ends before", "line");
  const StatementExtent extent = statements.at(wanted);
  const int64_t first = std::max<int64_t>(1, extent.line - around);
  const int64_t last = extent.end_line + around;
  Json lines = Json::array();
  int64_t at = 1;
  for (std::string_view left = source.text; at <= last && !left.empty(); ++at) {
    const size_t end = std::min(left.find('\n'), left.size());
    std::string_view one = left.substr(0, end);
    if (!one.empty() && one.back() == '\r') one.remove_suffix(1);
    if (at >= first) lines.push_back(cut(one, 4096));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return json_answer(Json{{"file", cut(file, kWholeName)},
                          {"first_line", first},
                          {"lines", std::move(lines)},
                          {"line", extent.line},
                          {"end_line", extent.end_line},
                          {"newer_than_process", (source.flags & SourceText::kNewer) != 0},
                          {"truncated", (source.flags & SourceText::kTruncated) != 0}});
}

Answer search_query(const ViewState& state, Params& params) {
  std::string wanted = params.text("q");
  if (wanted.size() > 1000) params.refuse("q", "at most 1000 bytes");
  std::optional<size_t> pool;
  if (params.has("pool")) pool = pool_of(state, params).index;
  if (params.bad()) return {};
  for (char& c : wanted) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  Json results = Json::array();
  if (wanted.empty()) return json_answer(Json{{"results", std::move(results)}});
  if (wanted.starts_with("0x")) {
    if (const auto address = number_from_text(wanted)) {
      search_address(state, static_cast<uint64_t>(*address), results);
    }
  }
  const size_t only = pool ? state.pools[*pool].input : state.inputs.size();
  for (size_t number = 0; number < state.inputs.size(); ++number) {
    if (pool && number != only) continue;
    if (wanted.starts_with("step ")) {
      const auto step = number_from_text(std::string_view(wanted).substr(5));
      const auto& ends = state.inputs[number]->steps.ends;
      if (step && *step >= 1 && static_cast<size_t>(*step) <= ends.size()) {
        Json result = result_json("step", "step " + std::to_string(*step));
        result["time"] =
            static_cast<int64_t>(ends[static_cast<size_t>(*step) - 1]) + state.shift(number);
        results.push_back(std::move(result));
      }
    }
    search_names(state, number, pool, wanted, results);
  }
  return json_answer(Json{{"results", std::move(results)}});
}

Answer pool_map_query(const ViewState& state, Params& params) {
  pool_of(state, params);
  if (params.bad()) return {};
  return json_answer(
      Json{{"available", false},
           {"why", "this input does not say which segments a pool is made of"},
           {"collect", "a snapshot of PyTorch's allocator, or a trace that watches the pool"}});
}

}  // namespace memscope::view
