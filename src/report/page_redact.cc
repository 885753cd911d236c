#include "report/page_redact.h"

#include <algorithm>
#include <array>

#include "report/text.h"

namespace memscope {
namespace {

struct Choice {
  std::string_view name;
  bool Redaction::*member;
};
constexpr std::array<Choice, 4> kChoices = {{{"paths", &Redaction::paths},
                                             {"arguments", &Redaction::arguments},
                                             {"host", &Redaction::host},
                                             {"source", &Redaction::source}}};

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// What may stand in a path within other text. Blanks may in truth; there they end it.
bool is_path_part(char c) {
  constexpr std::string_view kEnds = "\"'`<>|*?,;:()[]{}=";
  return static_cast<unsigned char>(c) > ' ' && kEnds.find(c) == std::string_view::npos;
}

bool begins_path(std::string_view token) {
  for (const std::string_view begin : {"/", "~/", "./", "../", "\\"}) {
    if (token.starts_with(begin)) return token.size() > begin.size();
  }
  return false;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::vector<std::string> Redaction::names() const {
  std::vector<std::string> names;
  for (const Choice& choice : kChoices) {
    if (this->*choice.member) names.emplace_back(choice.name);
  }
  return names;
}

Result<Redaction> Redaction::from_text(std::string_view text) {
  Redaction what;
  for (std::string_view left = text; !left.empty() || left.data() == text.data();) {
    const size_t comma = std::min(left.find(','), left.size());
    const std::string_view word = left.substr(0, comma);
    bool known = word == "all";
    for (const Choice& choice : kChoices) {
      if (word != choice.name && word != "all") continue;
      what.*choice.member = true;
      known = true;
    }
    if (!known) {
      return Error{"\"" + std::string(word) + "\"; allowed: paths, arguments, host, source, all"};
    }
    if (comma == left.size()) break;
    left.remove_prefix(comma + 1);
  }
  return what;
}

void Redactor::learn_frame(const Json& frame) {
  if (!frame.is_object()) return;
  const auto text = frame.find("text");
  // What is shorter is part of other words.
  constexpr size_t kLeast = 4;
  if (text == frame.end() || !text->is_string()) return;
  std::string statement = text->get<std::string>();
  if (statement.size() >= kLeast) statements_.push_back(std::move(statement));
}

void Redactor::learn_paths(const Json& value) {
  if (!value.is_structured()) return;
  for (const auto& [key, item] : value.items()) {
    if (!item.is_string() || (key != "file" && key != "path")) {
      learn_paths(item);
      continue;
    }
    const auto& whole = item.get_ref<const std::string&>();
    if (begins_path(whole) && !std::all_of(whole.begin(), whole.end(), is_path_part)) {
      awkward_paths_.push_back(whole);
    }
  }
}

void Redactor::learn(const Json& session) {
  const auto learn_hosts = [this](const Json& inputs) {
    for (const Json& input : inputs) {
      const Json process = input.value("process", Json());
      if (!process.is_object()) continue;
      const std::string host = process.value("host", "");
      if (host.empty() || hosts_.contains(host)) continue;
      std::string name = "host-" + std::to_string(hosts_.size() + 1);
      hosts_.emplace(host, std::move(name));
    }
  };
  const auto longest_first = [](std::vector<std::string>& list) {
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  learn_paths(session);
  longest_first(awkward_paths_);  // one may be part of another
  learn_hosts(session.value("inputs", Json::array()));
  const Json diagnosis = session.value("diagnosis", Json());
  if (!diagnosis.is_object()) return;
  learn_hosts(diagnosis.value("inputs", Json::array()));
  for (const char* list : {"verdicts", "suspects", "suppressed"}) {
    for (const Json& verdict : diagnosis.value(list, Json::array())) {
      learn_frame(verdict.value("site", Json()));
      learn_frame(verdict.value("kept_at", Json()));
      for (const Json& share : verdict.value("sites", Json::array())) {
        learn_frame(share.value("site", Json()));
      }
    }
  }
  longest_first(statements_);
}

std::string Redactor::without_hosts(std::string text) const {
  if (!what_.host) return text;
  for (const auto& [host, name] : hosts_) {
    for (size_t at = text.find(host); at != std::string::npos; at = text.find(host, at)) {
      const size_t end = at + host.size();
      const bool word =
          (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
      if (word) text.replace(at, host.size(), name);
      at = word ? at + name.size() : end;
    }
  }
  return text;
}

std::string Redactor::without_statements(std::string text) const {
  if (!what_.source) return text;
  for (const std::string& statement : statements_) {
    replace_all(text, " (" + statement + ")", "");
    replace_all(text, statement, "…");
  }
  return text;
}

std::string Redactor::path(std::string_view whole) {
  if (!what_.paths || whole.find_first_of("/\\") == std::string_view::npos) {
    return without_hosts(std::string(whole));
  }
  if (const auto known = short_.find(whole); known != short_.end()) return known->second;
  std::string_view name = whole;
  while (name.size() > 1 && (name.back() == '/' || name.back() == '\\')) name.remove_suffix(1);
  name.remove_prefix(name.find_last_of("/\\") + 1);
  std::string result = without_hosts(std::string(name));
  if (const int use = ++uses_[result]; use > 1) result += " (" + std::to_string(use) + ")";
  short_.emplace(whole, result);
  return result;
}

std::string Redactor::text(std::string_view free) {
  if (!what_.paths) return without_statements(without_hosts(std::string(free)));
  std::string known;
  if (!awkward_paths_.empty()) {
    known = free;
    for (const std::string& whole : awkward_paths_) {
      if (known.find(whole) != std::string::npos) replace_all(known, whole, path(whole));
    }
    free = known;
  }
  std::string result;
  for (size_t at = 0; at < free.size();) {
    if (!is_path_part(free[at])) {
      result += free[at++];
      continue;
    }
    size_t end = at;
    while (end < free.size() && is_path_part(free[end])) ++end;
    std::string_view token = free.substr(at, end - at);
    at = end;
    std::string_view tail;
    while (token.size() > 1 && token.back() == '.') {
      token.remove_suffix(1);
      tail = free.substr(at - tail.size() - 1, tail.size() + 1);
    }
    result += begins_path(token) ? path(token) : std::string(token);
    result += tail;
  }
  return without_statements(without_hosts(std::move(result)));
}

void Redactor::apply_to(Json& object, const std::string& key, Json& value) {
  if (what_.source && key == "lines") value = Json::array();
  if (value.is_structured()) return apply(value);
  if (!value.is_string()) return;
  const auto& is = value.get_ref<const std::string&>();
  if (what_.source && key == "text" && object.contains("function")) {
    // A holder's text is the way to the block, not a line of a source; it has a root.
    if (!object.contains("root")) value = nullptr;
  } else if (what_.source && key == "detail") {
    value = nullptr;
  } else if (what_.arguments && key == "command") {
    value = text(program_name(object.value("argv0", ""), is));
  } else if (is_one_of(key, {"file", "path", "argv0"})) {
    value = path(is);
  } else if (what_.host && key == "host" && hosts_.contains(is)) {
    value = hosts_[is];
  } else {
    value = text(is);
  }
}

void Redactor::apply(Json& answer) {
  if (!what_.any()) return;
  if (answer.is_object()) {
    for (auto at = answer.begin(); at != answer.end(); ++at) apply_to(answer, at.key(), at.value());
  } else if (answer.is_array()) {
    for (Json& item : answer) {
      if (item.is_string()) {
        item = text(item.get_ref<const std::string&>());
      } else {
        apply(item);
      }
    }
  } else if (answer.is_string()) {
    answer = text(answer.get_ref<const std::string&>());
  }
}

}  // namespace memscope
