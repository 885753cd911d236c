// The viewer's query API (docs/view-api.md): a name and parameters in, JSON or bytes out.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "view/request.h"
#include "view/session.h"

namespace memscope::view {

using Json = nlohmann::ordered_json;

class Api {
 public:
  explicit Api(const Session& session) : session_(session) {}
  // `name` as in /TOKEN/api/NAME. Never throws but for memory that runs out.
  Answer answer(std::string_view name, Params params) const;
  // The same of one picture of the session, whatever comes after it; all but `status`.
  static Answer answer_of(const std::shared_ptr<const ViewState>& state, std::string_view name,
                          Params params);

 private:
  const Session& session_;
};

// -- what the queries share --

Answer json_answer(const Json& json);
Answer error_answer(int status, const std::string& message, const std::string& parameter = {});

// A pool of the request, with its input's clock.
struct PoolAt {
  const ViewState* state = nullptr;
  size_t index = 0;
  const PoolViews* views = nullptr;
  const InputIndex* input = nullptr;
  const PoolIndex* pool = nullptr;
  int64_t shift = 0;  // from the input's clock to the session's

  int64_t out(uint64_t time) const { return static_cast<int64_t>(time) + shift; }
  // Nothing happens before 0.
  uint64_t in(int64_t time) const {
    return time <= shift ? 0 : static_cast<uint64_t>(time - shift);
  }
  int64_t end() const { return out(input->end); }
};
// Parameter `pool` (or another name); refuses what is none.
PoolAt pool_of(const ViewState& state, Params& params, const std::string& name = "pool");

Json frame_json(const SiteFrame& frame, size_t longest);
Json block_json(const PoolAt& at, uint32_t block, size_t longest);
Json site_json(const InputIndex& input, uint32_t site);  // null for 0
// A row of a table of blocks or events, and what its cells are.
Json row_json(const RowTable& table, uint32_t row);
Json columns_json(RowKind kind);

// The queries, by file.
using Query = Answer (*)(const ViewState& state, Params& params);
Answer session_query(const ViewState& state, Params& params);
Answer steps_query(const ViewState& state, Params& params);
Answer lanes_query(const ViewState& state, Params& params);

Answer lines_query(const ViewState& state, Params& params);
Answer graph_query(const ViewState& state, Params& params);
Answer legend_query(const ViewState& state, Params& params);
Answer locate_query(const ViewState& state, Params& params);
Answer hover_query(const ViewState& state, Params& params);
Answer place_query(const ViewState& state, Params& params);

Answer composition_query(const ViewState& state, Params& params);
Answer sites_query(const ViewState& state, Params& params);
Answer compare_query(const ViewState& state, Params& params);

Answer block_query(const ViewState& state, Params& params);
Answer stack_query(const ViewState& state, Params& params);
Answer source_query(const ViewState& state, Params& params);
Answer search_query(const ViewState& state, Params& params);
Answer pool_map_query(const ViewState& state, Params& params);

Answer blocks_query(const ViewState& state, Params& params);
Answer events_query(const ViewState& state, Params& params);
Answer index_query(const ViewState& state, Params& params);

}  // namespace memscope::view
