#include "analysis/storing.h"

#include <algorithm>
#include <array>
#include <vector>

#include "analysis/python_text.h"

namespace memscope {
namespace {

using Kind = PythonStatement::Kind;

// Ways to take something out of a container, or to begin it anew.
constexpr std::array<std::string_view, 5> kTakeOut = {".pop(", ".popleft(", ".popitem(", ".clear(",
                                                      ".remove("};
constexpr std::array<std::string_view, 8> kNewContainers = {
    "[", "{", "list(", "dict(", "defaultdict(", "collections.", "OrderedDict(", "deque("};
// A number is no tensor.
constexpr std::array<std::string_view, 2> kNumbers = {".item()", ".tolist()"};

using Line = SourceLine;

bool is_definition(std::string_view text) {
  return text.starts_with("def ") || text.starts_with("async def ");
}

// Of the function that begins at `first_line` (its decorators, if it has any); of the module where
// that is none: what is in no function. Functions inside a function see its names.
std::vector<Line> body_of(const std::vector<Line>& all, const Frame& frame,
                          std::string_view function) {
  std::vector<Line> body;
  if (function == "<module>") {
    size_t hidden = std::string::npos;  // indentation of the definition we are in
    for (const Line& line : all) {
      if (hidden != std::string::npos && line.indent > hidden) continue;
      hidden = is_definition(line.text) ? line.indent : std::string::npos;
      if (hidden == std::string::npos) body.push_back(line);
    }
    return body;
  }
  auto at = std::find_if(all.begin(), all.end(),
                         [&](const Line& line) { return line.number >= frame.first_line; });
  while (at != all.end() && at->text.starts_with("@")) ++at;
  if (frame.first_line == 0 || at == all.end() || !is_definition(at->text)) return body;
  const size_t indent = at->indent;
  for (++at; at != all.end() && at->indent > indent; ++at) body.push_back(*at);
  return body;
}

std::string last_name(std::string_view dotted) {
  return std::string(dotted.substr(dotted.rfind('.') + 1));
}

// Names at which `name` stands alone: "x" in "x.pop()", not in "max.pop()" or "self.x.pop()".
bool mentions(std::string_view text, std::string_view name, std::string_view after) {
  const std::string wanted = std::string(name) + std::string(after);
  for (size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    if (before != '.' && before != '_' && std::isalnum(static_cast<unsigned char>(before)) == 0) {
      return true;
    }
  }
  return false;
}

class Finder {
 public:
  Finder(Sites& sites, StackId stack) : sites_(sites), node_(stack) {}

  std::optional<StoredAt> find() {
    std::string callee;  // the function whose result the statement gets; "" at the site itself
    constexpr int kMostCalls = 5;
    for (int i = 0; i < kMostCalls && to_user_frame(callee.empty()); ++i) {
      if (!enter()) return std::nullopt;
      const PythonStatement made = parse_statement(text_);
      std::optional<std::string> name;
      switch (made.kind) {
        case Kind::kStore:
        case Kind::kSetItem:
          return gets(made.value, callee) ? kept_by(made, line_) : std::nullopt;
        case Kind::kAssign:
          if (!callee.empty() && !is_call_of(made.value, callee)) return std::nullopt;
          name = made.target;
          break;
        case Kind::kReturn:
          if (!callee.empty() && !is_call_of(made.value, callee)) return std::nullopt;
          break;
        case Kind::kOther:
          return std::nullopt;
      }
      if (name) {
        const Line* store = nullptr;
        int stores = 0, returns = 0;
        for (const Line& line : body_) {
          const PythonStatement statement = parse_statement(line.text);
          if (!has_element(statement, *name)) continue;
          if (statement.kind == Kind::kReturn) ++returns;
          if (statement.kind != Kind::kStore && statement.kind != Kind::kSetItem) continue;
          store = &line;
          ++stores;
        }
        if (stores == 1) return kept_by(parse_statement(store->text), store->number);
        if (stores != 0 || returns == 0) return std::nullopt;
      }
      callee = last_name(function_);
      node_ = sites_.stacks().parent(node_);
    }
    return std::nullopt;
  }

 private:
  // Goes out to the user's next frame; through a framework's only, which hand results on.
  bool to_user_frame(bool innermost) {
    for (; node_; node_ = sites_.stacks().parent(node_)) {
      const Frame& frame = sites_.stacks().frame(sites_.stacks().innermost(node_));
      if (frame.kind != FrameKind::kPython) continue;
      const Place place = sites_.place_of_file(frame.file);
      if (place == Place::kUser) return true;
      if (!innermost && place != Place::kFramework) return false;
    }
    return false;
  }

  bool enter() {
    frame_ = sites_.stacks().frame(sites_.stacks().innermost(node_));
    file_ = std::string(sites_.strings().text(frame_.file));
    function_ = std::string(sites_.strings().text(frame_.function));
    const Statements* statements = sites_.statements_of(file_, &source_);
    if (statements == nullptr || (source_->flags & SourceText::kNewer) != 0) return false;
    if (frame_.line == 0 || frame_.line > statements->line_count()) return false;
    const StatementExtent extent = statements->at(frame_.line);
    line_ = extent.line;
    text_ = statements->text(source_->text, extent);
    all_ = &sites_.lines_of(file_);
    body_ = body_of(*all_, frame_, function_);
    return !body_.empty();
  }

  static bool has_element(const PythonStatement& statement, const std::string& name) {
    if (statement.kind == Kind::kOther || statement.kind == Kind::kAssign) return false;
    const std::vector<std::string> elements = stored_elements(statement.value);
    return std::find(elements.begin(), elements.end(), name) != elements.end();
  }

  // A module is called by its name, its forward() does the work.
  static bool is_call_of(std::string_view expression, const std::string& function) {
    const std::string callee = called(expression);
    if (callee.empty()) return false;
    return last_name(callee) == function || function == "forward" || function == "__call__";
  }

  // Whether what is stored is what was made: at the site anything but a number, further out the
  // result of the call.
  static bool gets(const std::string& value, const std::string& callee) {
    for (const std::string_view number : kNumbers) {
      if (value.find(number) != std::string::npos) return false;
    }
    if (callee.empty()) return true;
    const std::vector<std::string> elements = stored_elements(value);
    return std::any_of(elements.begin(), elements.end(),
                       [&](const std::string& element) { return is_call_of(element, callee); });
  }

  std::optional<StoredAt> kept_by(const PythonStatement& store, uint32_t line) {
    const std::string& container = store.target;
    bool made_here = false;
    for (const Line& other : *all_) {
      if (is_definition(other.text) && (other.text.find("def append(") != std::string::npos ||
                                        other.text.find("def extend(") != std::string::npos)) {
        return std::nullopt;  // the user's own idea of appending
      }
      for (const std::string_view out : kTakeOut) {
        if (mentions(other.text, container, out)) return std::nullopt;
      }
      if (other.text.starts_with("del ") && mentions(other.text, container, "")) {
        return std::nullopt;
      }
      for (const std::string_view kind : kNewContainers) {
        made_here = made_here || mentions(other.text, container, " = " + std::string(kind));
      }
    }
    // Into a tensor an item is copied, not kept.
    if (store.kind == Kind::kSetItem && !made_here) return std::nullopt;
    StoredAt stored{sites_.describe(file_, line, line, function_), container,
                    file_ + ':' + function_};
    stored.at.inferred = true;
    return stored;
  }

  Sites& sites_;
  StackId node_;
  Frame frame_;
  std::string file_, function_, text_;
  uint32_t line_ = 0;
  const SourceText* source_ = nullptr;
  const std::vector<Line>* all_ = nullptr;
  std::vector<Line> body_;
};

}  // namespace

std::optional<StoredAt> stored_at(Sites& sites, StackId stack) {
  return Finder(sites, stack).find();
}

}  // namespace memscope
