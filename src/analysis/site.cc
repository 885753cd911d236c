#include "analysis/site.h"

namespace memscope {

std::string place_text(const SiteFrame& frame) {
  return frame.file.value_or("?") + ":" + (frame.line ? std::to_string(*frame.line) : "?");
}

std::string function_text(const SiteFrame& frame) {
  return frame.file.value_or("?") + ":" + frame.function;
}

Place Sites::place_of_file(StringId file) {
  const auto found = places_.find(file.value);
  if (found != places_.end()) return found->second;
  const Place place = place_of(strings_.text(file));
  places_[file.value] = place;
  return place;
}

const Statements* Sites::statements_of(std::string_view file, const SourceText** source) {
  const auto text = sources_.find(file);
  if (text == sources_.end() || (text->second.flags & SourceText::kStatementsOnly) != 0) {
    return nullptr;
  }
  *source = &text->second;
  std::unique_ptr<Statements>& statements = statements_[std::string(file)];
  if (statements == nullptr) statements = std::make_unique<Statements>(text->second.text);
  return statements.get();
}

const std::vector<SourceLine>& Sites::lines_of(std::string_view file) {
  const auto [at, fresh] = lines_.try_emplace(std::string(file));
  const SourceText* source = nullptr;
  const Statements* statements = fresh ? statements_of(file, &source) : nullptr;
  if (statements != nullptr) at->second = source_lines(*statements, source->text);
  return at->second;
}

SiteFrame Sites::describe(std::string_view file, uint32_t line, uint32_t end_line,
                          std::string_view function) {
  SiteFrame frame;
  if (!file.empty()) frame.file = std::string(file);
  frame.function = std::string(function);
  frame.user = place_of(file) == Place::kUser;
  if (line == 0) return frame;
  frame.line = line;
  frame.end_line = std::max(line, end_line);
  const SourceText* source = nullptr;
  const Statements* statements = statements_of(file, &source);
  if (statements == nullptr) return frame;
  frame.inferred = (source->flags & SourceText::kNewer) != 0;
  if (line > statements->line_count()) return frame;
  const StatementExtent extent = statements->at(line);
  frame.line = extent.line;
  frame.end_line = extent.end_line;
  frame.text = statements->text(source->text, extent);
  return frame;
}

SiteFrame Sites::describe(FrameId id) {
  const Frame& frame = stacks_.frame(id);
  SiteFrame result = describe(strings_.text(frame.file), frame.line, frame.end_line,
                              strings_.text(frame.function));
  if (frame.module) result.module = std::string(strings_.text(frame.module));
  if (frame.kind == FrameKind::kNative) {
    result.native = true;
    result.user = false;
  }
  return result;
}

uint32_t Sites::site_of(StackId stack) {
  const auto known = by_stack_.find(stack.value);
  if (known != by_stack_.end()) return known->second;
  FrameId user, other, any;
  for (StackId node = stack; node && !user; node = stacks_.parent(node)) {
    const FrameId id = stacks_.innermost(node);
    const Frame& frame = stacks_.frame(id);
    if (frame.kind != FrameKind::kPython) continue;
    if (!any) any = id;
    const Place place = place_of_file(frame.file);
    if (place == Place::kUser) user = id;
    if (place == Place::kLibrary && !other) other = id;
  }
  const FrameId chosen = user ? user : other ? other : any;
  uint32_t site = 0;
  if (chosen) {
    const auto seen = by_frame_.find(chosen.value);
    if (seen != by_frame_.end()) {
      site = seen->second;
    } else {
      SiteFrame frame = describe(chosen);
      const std::string key = place_text(frame) + ":" + frame.function;
      const auto [at, fresh] = index_.try_emplace(key, static_cast<uint32_t>(sites_.size()));
      if (fresh) sites_.push_back({std::move(frame), key});
      site = at->second;
      by_frame_[chosen.value] = site;
    }
  }
  by_stack_[stack.value] = site;
  return site;
}

std::vector<SiteFrame> Sites::describe_stack(StackId stack, size_t most) {
  std::vector<SiteFrame> frames;
  for (StackId node = stack; node && frames.size() < most; node = stacks_.parent(node)) {
    frames.push_back(describe(stacks_.innermost(node)));
  }
  return frames;
}

bool Sites::passes(StackId stack, uint32_t site) {
  const SiteFrame& wanted = sites_[site].frame;
  for (StackId node = stack; node; node = stacks_.parent(node)) {
    const Frame& frame = stacks_.frame(stacks_.innermost(node));
    const int64_t line = frame.line;
    if (wanted.line <= line && line <= wanted.end_line && frame.kind == FrameKind::kPython &&
        strings_.text(frame.file) == wanted.file &&
        strings_.text(frame.function) == wanted.function) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> Sites::user_functions(StackId stack) {
  std::vector<std::string> functions;
  for (StackId node = stack; node; node = stacks_.parent(node)) {
    const Frame& frame = stacks_.frame(stacks_.innermost(node));
    if (frame.kind != FrameKind::kPython || place_of_file(frame.file) != Place::kUser) continue;
    functions.push_back(std::string(strings_.text(frame.file)) + ":" +
                        std::string(strings_.text(frame.function)));
  }
  return functions;
}

}  // namespace memscope
