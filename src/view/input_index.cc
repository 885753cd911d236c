#include "view/input_index.h"

#include <algorithm>

#include "view/index_file.h"
#include "view/name_table.h"

namespace memscope::view {

std::string short_place(const SiteFrame& frame) {
  if (!frame.file && frame.module) return frame.module->substr(frame.module->rfind('/') + 1);
  if (!frame.file) return "(no code line)";
  const size_t slash = frame.file->find_last_of('/');
  std::string place = slash == std::string::npos ? *frame.file : frame.file->substr(slash + 1);
  if (frame.line) place += ":" + std::to_string(*frame.line);
  return place;
}

void InputIndex::make_sites() {
  const std::scoped_lock lock(mutex_);
  sites_ = std::make_unique<Sites>(stacks, strings, side.sources, names_.get());
  stack_site_.assign(stacks.size(), 0);
  site_frames_.assign(1, {});
  site_places_.assign(1, short_place({}));
  for (const uint32_t stack : used_stacks) {
    if (stack >= stack_site_.size()) continue;
    const uint32_t site = sites_->site_of(StackId(stack));
    stack_site_[stack] = site;
    while (site_frames_.size() <= site) {
      site_frames_.push_back(sites_->frame(static_cast<uint32_t>(site_frames_.size())));
      site_places_.push_back(short_place(site_frames_.back()));
    }
  }
}

void InputIndex::take_names(std::shared_ptr<const NameTable> names) {
  sites_.reset();
  table_ = std::move(names);
  names_ = std::make_unique<BoundNames>(table_, *this);
  make_sites();
}

std::shared_ptr<InputIndex> InputIndex::named(std::shared_ptr<const NameTable> names) const {
  auto copy = std::make_shared<InputIndex>();
  static_cast<InputTables&>(*copy) = *this;
  copy_tables(stacks, strings, *copy);
  copy->take_names(std::move(names));
  return copy;
}

std::vector<SiteFrame> InputIndex::describe_stack(uint32_t stack, size_t most) const {
  if (stack >= stacks.size()) return {};
  const std::scoped_lock lock(mutex_);
  return sites_->describe_stack(StackId(stack), most);
}

SiteFrame InputIndex::describe_frame(FrameId frame) const {
  const std::scoped_lock lock(mutex_);
  return sites_->describe(frame);
}

std::string InputIndex::thread_name(uint32_t thread) const {
  if (thread >= threads.size() || thread == 0) return "";
  const ThreadEntry& entry = threads[thread];
  return entry.name + " (" + std::to_string(entry.tid) + ")";
}

uint32_t InputIndex::step_at(uint64_t time) const {
  if (steps.begin != 0 && time < steps.begin) return 0;
  return static_cast<uint32_t>(std::lower_bound(steps.ends.begin(), steps.ends.end(), time) -
                               steps.ends.begin()) +
         1;
}

}  // namespace memscope::view
