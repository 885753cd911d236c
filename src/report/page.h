// A report: the viewer's page with its answers in it, one file to send to a colleague.
//
//   auto page = make_page({.state = session.state(), .page = template});
//
// Promises
//  * Never longer than `most`, whatever the input. What was recorded comes in this order, and what
//    no longer fits is left out, which the page says:
//      1. the verdicts and what is known of the run          4. the comparison, the composition
//      2. the picture that the viewer would open with,       5. other orders and colours
//         in as much detail as its share of the room allows  6. other pools, less of each
//      3. accused, largest and drawn blocks, their stacks,
//         the lines of source they name
//  * Nothing in it is fetched from anywhere, and no name of the input becomes markup.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "report/page_redact.h"
#include "view/session.h"

namespace memscope {

struct PageRequest {
  static constexpr size_t kMost = 10'000'000;
  static constexpr size_t kLeast = 500'000;  // beside the page itself

  std::shared_ptr<const view::ViewState> state;
  std::string_view page;  // web/dist/report.html
  size_t most = kMost;    // bytes
  Redaction redact;
  std::function<void(double share)> progress;  // may be empty
};

struct Page {
  std::string text;
  nlohmann::ordered_json left_out;  // [{what, kept, all}]
};

Result<Page> make_page(const PageRequest& request);

}  // namespace memscope
