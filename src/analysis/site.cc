#include "analysis/site.h"

#include <algorithm>
#include <array>
#include <cstdio>

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

SiteFrame Sites::describe_native(const Frame& frame, const SourceFrame* source) {
  const std::string_view object = strings_.text(frame.file);
  SiteFrame result;
  result.native = true;
  if (!object.empty()) result.module = std::string(object);
  result.function = std::string(strings_.text(frame.function));
  result.user = place_of_object(object) == Place::kUser;
  if (source != nullptr) {
    result.function = source->function;
    result.user = result.user && place_of_source(source->file) == Place::kUser;
    if (!source->file.empty()) result.file = std::string(source->file);
    if (source->line != 0) result.line = result.end_line = source->line;
  }
  if (result.function.empty() || result.function == "?") {
    std::array<char, 24> offset{};
    if (frame.offset != 0)
      std::snprintf(offset.data(), offset.size(), "+0x%llx",
                    static_cast<unsigned long long>(frame.offset));
    result.function = std::string(object.substr(object.rfind('/') + 1)) + offset.data();
  }
  return result;
}

SiteFrame Sites::describe(FrameId id, size_t inlined) {
  const Frame& frame = stacks_.frame(id);
  if (frame.kind == FrameKind::kNative) {
    const auto sources = names_ == nullptr ? std::span<const SourceFrame>() : names_->find(frame);
    if (sources.empty()) return describe_native(frame, nullptr);
    return describe_native(frame, &sources[std::min(inlined, sources.size() - 1)]);
  }
  SiteFrame result = describe(strings_.text(frame.file), frame.line, frame.end_line,
                              strings_.text(frame.function));
  if (frame.module) result.module = std::string(strings_.text(frame.module));
  return result;
}

Sites::Native Sites::judge(FrameId id) {
  const auto known = natives_.find(id.value);
  if (known != natives_.end()) return known->second;
  const Frame& frame = stacks_.frame(id);
  const auto [at, fresh] = object_places_.emplace(frame.file.value, Place::kUser);
  if (fresh) at.value() = place_of_object(strings_.text(frame.file));
  const Place place = at->second;
  Native native;
  if (place == Place::kLibrary || place == Place::kFramework) native.worth = Worth::kLibrary;
  if (place == Place::kUser) {
    native.worth = Worth::kUserFunction;
    const auto sources = names_ == nullptr ? std::span<const SourceFrame>() : names_->find(frame);
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].line == 0 || place_of_source(sources[i].file) != Place::kUser) continue;
      native = {Worth::kUserLine, i};
      break;
    }
    // A library's template that was compiled into the user's object: whose call it is stands
    // farther out.
    if (native.worth == Worth::kUserFunction && !sources.empty() && sources.back().line != 0) {
      native.worth = Worth::kLibrary;
    }
  }
  natives_[id.value] = native;
  return native;
}

Sites::Chosen Sites::choose(StackId stack) {
  FrameId library, any;
  Chosen function, native;
  for (StackId node = stack; node; node = stacks_.parent(node)) {
    const FrameId id = stacks_.innermost(node);
    const Frame& frame = stacks_.frame(id);
    if (frame.kind == FrameKind::kPython) {
      const Place place = place_of_file(frame.file);
      if (place == Place::kUser) return {id};
      if (place == Place::kLibrary && !library) library = id;
      if (!any) any = id;
      continue;
    }
    const auto [worth, inlined] = judge(id);
    if (worth == Worth::kUserLine) return {id, inlined};
    if (worth == Worth::kUserFunction && !function.frame) function = {id};
    if (worth == Worth::kLibrary && !native.frame) native = {id};
  }
  if (function.frame) return function;
  if (library || any) return {library ? library : any};
  return native;
}

uint32_t Sites::make_site(Chosen chosen) {
  const auto seen = by_frame_.find(chosen.frame.value);
  if (seen != by_frame_.end()) return seen->second;
  SiteFrame frame = describe(chosen.frame, chosen.inlined);
  std::string key = place_text(frame) + ":" + frame.function;
  if (!frame.file && frame.module) key += ":" + *frame.module;
  const auto [at, fresh] = index_.try_emplace(key, static_cast<uint32_t>(sites_.size()));
  if (fresh) sites_.push_back({std::move(frame), std::move(key)});
  by_frame_[chosen.frame.value] = at->second;
  return at->second;
}

uint32_t Sites::site_of(StackId stack) {
  const auto known = by_stack_.find(stack.value);
  if (known != by_stack_.end()) return known->second;
  const Chosen chosen = choose(stack);
  const uint32_t site = chosen.frame ? make_site(chosen) : 0;
  by_stack_[stack.value] = site;
  return site;
}

std::vector<SiteFrame> Sites::describe_stack(StackId stack, size_t most) {
  std::vector<SiteFrame> frames;
  for (StackId node = stack; node && frames.size() < most; node = stacks_.parent(node)) {
    const FrameId id = stacks_.innermost(node);
    const Frame& frame = stacks_.frame(id);
    const bool named = frame.kind == FrameKind::kNative && names_ != nullptr;
    const size_t calls = named ? std::max<size_t>(1, names_->find(frame).size()) : 1;
    for (size_t i = 0; i < calls && frames.size() < most; ++i) frames.push_back(describe(id, i));
  }
  return frames;
}

bool Sites::passes(StackId stack, uint32_t site) {
  const SiteFrame& wanted = sites_[site].frame;
  for (StackId node = stack; node; node = stacks_.parent(node)) {
    const FrameId id = stacks_.innermost(node);
    const Frame& frame = stacks_.frame(id);
    if (wanted.native != (frame.kind == FrameKind::kNative)) continue;
    if (wanted.native) {
      const Native native = judge(id);
      if (native.worth >= Worth::kUserFunction && make_site({id, native.inlined}) == site) {
        return true;
      }
      continue;
    }
    const int64_t line = frame.line;
    if (wanted.line <= line && line <= wanted.end_line &&
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
    const FrameId id = stacks_.innermost(node);
    const Frame& frame = stacks_.frame(id);
    if (frame.kind == FrameKind::kNative) {
      const Native native = judge(id);
      if (native.worth != Worth::kUserLine) continue;
      functions.push_back(function_text(describe(id, native.inlined)));
    } else if (place_of_file(frame.file) == Place::kUser) {
      functions.push_back(std::string(strings_.text(frame.file)) + ":" +
                          std::string(strings_.text(frame.function)));
    }
  }
  return functions;
}

}  // namespace memscope
