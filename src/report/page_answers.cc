#include "report/page_answers.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace memscope {

std::string script_text(const PageJson& json) {
  const std::string text = json.dump(-1, ' ', false, PageJson::error_handler_t::replace);
  std::string result;
  result.reserve(text.size() + text.size() / 16);
  for (const char c : text) {
    if (c == '<') {
      result += "\\u003c";  // only strings have it
    } else {
      result += c;
    }
  }
  return result;
}

std::string packed_text(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
            reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()), 9);
  packed.resize(size);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((packed.size() + 2) / 3 * 4);
  for (size_t at = 0; at < packed.size(); at += 3) {
    const size_t have = std::min<size_t>(3, packed.size() - at);
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i) {
      three = three << 8 | (i < have ? static_cast<uint8_t>(packed[at + i]) : 0u);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= have ? kDigits[three >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> PageAnswers::ask_bytes(const PageQuestion& question) const {
  PageValues values = question.recorded;
  values.insert(question.asked.begin(), question.asked.end());
  view::Answer answer =
      view::Api::answer_of(state_, question.name, view::Params::from_values(std::move(values)));
  if (answer.status != 200) return std::nullopt;
  return std::move(answer.body);
}

std::optional<PageJson> PageAnswers::ask(const PageQuestion& question) const {
  const auto body = ask_bytes(question);
  if (!body) return std::nullopt;
  PageJson answer = PageJson::parse(*body, nullptr, false);
  if (answer.is_discarded()) return std::nullopt;
  return answer;
}

bool PageAnswers::add(std::string& list, std::string item, size_t most) {
  if (!list.empty()) item.insert(0, ",\n");
  if (item.size() > std::min(most, left())) return false;
  used_ += item.size();
  list += item;
  return true;
}

bool PageAnswers::keep(const PageQuestion& question, size_t most) {
  auto answer = ask(question);
  return answer && keep_answer(question, std::move(*answer), most);
}

bool PageAnswers::keep_answer(const PageQuestion& question, PageJson answer, size_t most) {
  PageJson parameters = question.recorded;
  redactor_.apply(answer);
  redactor_.apply(parameters);  // a source is asked for by its path
  return add(answers_,
             script_text(PageJson{{"name", question.name},
                                  {"parameters", std::move(parameters)},
                                  {"json", std::move(answer)}}),
             most);
}

bool PageAnswers::keep_bytes(const PageQuestion& question, std::string_view bytes, size_t most) {
  return add(answers_,
             script_text(PageJson{{"name", question.name},
                                  {"parameters", question.recorded},
                                  {"packed", packed_text(bytes)}}),
             most);
}

bool PageAnswers::keep_stack(size_t input, uint32_t stack, size_t most) {
  if (has_stack(input, stack)) return true;
  const auto answer =
      ask({"stack", {{"input", std::to_string(input)}, {"stack", std::to_string(stack)}}, {}});
  if (!answer) return false;
  PageJson frames = answer->value("frames", PageJson::array());
  redactor_.apply(frames);
  // First what it would take, then the tables: a stack is whole or not there.
  std::vector<std::string> fresh;
  PageJson numbers = PageJson::array();
  std::map<std::string, size_t, std::less<>> fresh_ids;
  size_t bytes = 64;
  for (const PageJson& frame : frames) {
    std::string text = script_text(frame);
    const auto known = frame_ids_.find(text);
    size_t id = 0;
    if (known != frame_ids_.end()) {
      id = known->second;
    } else {
      const auto [at, inserted] = fresh_ids.emplace(text, frame_ids_.size() + fresh_ids.size());
      id = at->second;
      if (inserted) {
        bytes += text.size() + 2;
        fresh.push_back(std::move(text));
      }
    }
    numbers.push_back(id);
  }
  std::string item =
      script_text(PageJson{{"input", input}, {"stack", stack}, {"frames", std::move(numbers)}});
  if (bytes + item.size() > std::min(most, left())) return false;
  for (std::string& text : fresh) add(frames_, std::move(text), SIZE_MAX);
  frame_ids_.merge(fresh_ids);
  add(stack_list_, std::move(item), SIZE_MAX);
  stacks_[{input, stack}] = true;
  return true;
}

std::string PageAnswers::json(const PageJson& facts) const {
  std::string text = "{\"facts\":" + script_text(facts);
  text += ",\n\"answers\":[" + answers_ + "],\n\"frames\":[" + frames_;
  text += "],\n\"stacks\":[" + stack_list_ + "]}";
  return text;
}

}  // namespace memscope
