// The line of a stack that is to blame, and frames as the diagnosis shows them.
//
//   site   the innermost user frame's statement, Python's or, where its line is known, native;
//          else the user's innermost native function; in a stack without either the innermost
//          Python frame that is neither the standard library's, a framework's nor the tool's;
//          failing that the innermost Python frame; in a stack without Python the innermost native
//          frame outside the C run time, allocators and the tool (all three user:false)
//
// A native frame has its names from NativeNames: inlined calls are frames of their own. One of
// which nothing is known is "object+0xoffset". Two frames in one statement have one site. One Sites
// object serves one input and remembers what it has looked up.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/diagnosis.h"
#include "analysis/native_names.h"
#include "analysis/places.h"
#include "analysis/statement.h"
#include "core/stacks.h"
#include "replay/side_records.h"
#include "tsl/robin_map.h"

namespace memscope {

class Sites {
 public:
  using Sources = std::map<std::string, SourceText, std::less<>>;
  // All must outlive the object. Without `names` no native frame's line is known.
  Sites(const StackTable& stacks, const StringTable& strings, const Sources& sources,
        const FrameNames* names = nullptr)
      : stacks_(stacks), strings_(strings), sources_(sources), names_(names) {}

  // The site of a stack: a small number, the same for stacks with the same site; 0 for none.
  uint32_t site_of(StackId stack);
  const SiteFrame& frame(uint32_t site) const { return sites_[site].frame; }
  // The same text for the same site in every process.
  const std::string& key(uint32_t site) const { return sites_[site].key; }

  // A frame of the tables, or of a record, with its statement. Of a native one the function that
  // was called, or one of those inlined into it: 0 is the innermost.
  SiteFrame describe(FrameId id, size_t inlined = kCalled);
  SiteFrame describe(std::string_view file, uint32_t line, uint32_t end_line,
                     std::string_view function);
  std::vector<SiteFrame> describe_stack(StackId stack, size_t most);
  // Whether one of the stack's frames is in the site's statement.
  bool passes(StackId stack, uint32_t site);
  // The user's functions on a stack, innermost first: "file:function".
  std::vector<std::string> user_functions(StackId stack);
  // The statements of a file whose whole text the trace has, else null.
  const Statements* statements_of(std::string_view file, const SourceText** source);
  // They, in order; empty without the whole text.
  const std::vector<SourceLine>& lines_of(std::string_view file);
  Place place_of_file(StringId file);
  const StackTable& stacks() const { return stacks_; }
  const StringTable& strings() const { return strings_; }

 private:
  static constexpr size_t kCalled = ~size_t{0};
  struct Site {
    SiteFrame frame;
    std::string key;
  };
  // What a native frame is worth as a site, and which of its inlined calls it is.
  enum class Worth : uint8_t { kNothing, kLibrary, kUserFunction, kUserLine };
  struct Native {
    Worth worth = Worth::kNothing;
    size_t inlined = kCalled;
  };
  struct Chosen {
    FrameId frame;
    size_t inlined = kCalled;
  };

  SiteFrame describe_native(const Frame& frame, const SourceFrame* source);
  Native judge(FrameId id);
  Chosen choose(StackId stack);
  uint32_t make_site(Chosen chosen);

  const StackTable& stacks_;
  const StringTable& strings_;
  const Sources& sources_;
  const FrameNames* names_;
  std::vector<Site> sites_{1};
  std::map<std::string, uint32_t, std::less<>> index_;  // key -> site
  tsl::robin_map<uint32_t, uint32_t> by_stack_, by_frame_;
  tsl::robin_map<uint32_t, Place> places_, object_places_;  // by StringId
  tsl::robin_map<uint32_t, Native> natives_;                // by FrameId
  std::map<std::string, std::unique_ptr<Statements>, std::less<>> statements_;
  std::map<std::string, std::vector<SourceLine>, std::less<>> lines_;
};

// "file:line" and "file:function" of a frame, "?" for what is unknown.
std::string place_text(const SiteFrame& frame);
std::string function_text(const SiteFrame& frame);

}  // namespace memscope
