// The answer `session` of a report: the server's, cut down until it has its place whatever the
// run: thousands of processes, verdicts with stacks a thousand frames deep.
#pragma once

#include "report/page_tally.h"

namespace memscope {

// At most `most` bytes as script text: lists and texts are cut, all alike, until they are. Pools of
// processes that went go as well; the opening then falls back to what is there.
nlohmann::ordered_json fit_session(const nlohmann::ordered_json& session, size_t most,
                                   PageTally& tally);

}  // namespace memscope
