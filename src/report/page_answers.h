// The answers that a report carries: asked of the viewer's own queries in this process, redacted,
// and kept as text while there is room.
//
//   PageAnswers answers(state, room, redactor);
//   answers.keep({.name = "legend", .recorded = {{"pool", "0"}, {"colour", "site"}}});
//   page = head + answers.json(facts) + tail;
//
// Promises
//  * What is kept is what the server would have said, or less of it where a comment says so.
//  * json() is never longer than the room given; what does not fit is not kept.
//  * It holds no `<`: it may stand in a script element of a page (the HTML standard, 4.12.1.3).
//
// Stacks are kept apart: a frame once, a stack as the numbers of its frames. Binary answers are
// compressed (RFC 1950) and in base64.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "report/page_redact.h"
#include "view/api.h"

namespace memscope {

using PageJson = nlohmann::ordered_json;
using PageValues = std::map<std::string, std::string>;

struct PageQuestion {
  std::string name;
  PageValues recorded;  // what the page finds the answer by
  PageValues asked;     // and what was asked beside it
};

class PageAnswers {
 public:
  PageAnswers(std::shared_ptr<const view::ViewState> state, size_t room, Redactor& redactor)
      : state_(std::move(state)), room_(room), redactor_(redactor) {}

  const view::ViewState& state() const { return *state_; }
  size_t left() const { return room_ - used_; }
  size_t used() const { return used_; }

  // The server's answer, as it is; nullopt where it has none.
  std::optional<PageJson> ask(const PageQuestion& question) const;
  std::optional<std::string> ask_bytes(const PageQuestion& question) const;

  // False where there is no answer, or it does not fit into `most` bytes of what is left.
  bool keep(const PageQuestion& question, size_t most = SIZE_MAX);
  bool keep_answer(const PageQuestion& question, PageJson answer, size_t most = SIZE_MAX);
  bool keep_bytes(const PageQuestion& question, std::string_view bytes, size_t most = SIZE_MAX);
  // True also where it is there already.
  bool keep_stack(size_t input, uint32_t stack, size_t most = SIZE_MAX);
  bool has_stack(size_t input, uint32_t stack) const { return stacks_.contains({input, stack}); }

  // The whole, with `facts` beside: at most kFactsRoom bytes of them.
  static constexpr size_t kFactsRoom = 8 << 10;
  std::string json(const PageJson& facts) const;

 private:
  bool add(std::string& list, std::string item, size_t most);

  std::shared_ptr<const view::ViewState> state_;
  size_t room_;
  Redactor& redactor_;
  size_t used_ = kFactsRoom;
  std::string answers_, frames_, stack_list_;
  std::map<std::string, size_t, std::less<>> frame_ids_;  // by the frame's text
  std::map<std::pair<size_t, uint32_t>, bool> stacks_;
};

// JSON for a script element.
std::string script_text(const PageJson& json);
// `bytes` compressed and in base64.
std::string packed_text(std::string_view bytes);

}  // namespace memscope
