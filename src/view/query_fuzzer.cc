// Any question at all, to a small index: the first line is the query's name, the rest its
// parameters as they stand in an address. Every answer is 200, 400 or 404, and is what its type
// says.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "view/api.h"
#include "view/test_index.h"

namespace {

using namespace memscope::view;  // NOLINT(google-build-using-namespace)

std::shared_ptr<const ViewState> make_state() {
  auto state = std::make_shared<ViewState>();
  state->generation = 1;
  const auto input = random_index(1, 300, 8, 5);
  state->origin = input->origin;
  state->inputs.push_back(input);
  state->pools.push_back({0, std::make_shared<const PoolViews>(input, 0)});
  state->verdicts.resize(1);
  state->verdicts[0].push_back({.verdict = 0, .name = "leak", .sites = {1, 2}, .first_step = 1});
  state->warmup = 1;
  return state;
}

void check(const Answer& answer) {
  if (answer.status != 200 && answer.status != 400 && answer.status != 404) std::abort();
  if (answer.more) {
    constexpr size_t kPieces = 100;  // of a download of 300 rows there is one
    std::string piece;
    for (size_t i = 0; answer.more(piece); ++i) {
      if (i == kPieces) std::abort();
    }
    return;
  }
  if (answer.type != "application/json") return;
  if (nlohmann::json::parse(answer.body, nullptr, false).is_discarded()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const ViewState> state = make_state();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(text.find('\n'), text.size());
  const std::string_view query = text.substr(std::min(line + 1, text.size()));
  check(Api::answer_of(state, text.substr(0, line), Params::from_query(query)));
  return 0;
}
