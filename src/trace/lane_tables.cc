#include "trace/lane_tables.h"

#include "trace/records.h"

namespace memscope {

StringId ProcessTables::intern(std::string_view text) {
  if (text.size() > kMaxText) text = text.substr(0, kMaxText);
  const size_t before = strings.size();
  if (text_bytes > kMaxTextBytes) return StringId{};
  const StringId id = strings.intern(text);
  if (strings.size() != before) text_bytes += text.size() + sizeof(std::string);
  return id;
}

ThreadId ProcessTables::thread(uint64_t tid, std::string_view name) {
  if (const auto found = last_of_tid_.find(tid); found != last_of_tid_.end()) {
    // A tid that comes back with another name is another thread.
    if (threads[found->second].name == name) return ThreadId(found->second);
  }
  if (threads.size() >= kMaxThreads) return ThreadId{};
  const auto id = static_cast<uint32_t>(threads.size());
  threads.push_back({tid, std::string(name.substr(0, 64))});
  last_of_tid_[tid] = id;
  return ThreadId(id);
}

bool LaneTables::define(std::span<const uint64_t> words, ProcessTables& process) {
  switch (static_cast<Kind>(words[0] & 0xff)) {
    case Kind::kLane: {
      const auto lane = decode_record<LaneRecord>(words);
      if (!lane) return false;
      if (lane->keeps_ids == 0) {
        strings_.clear();
        frames_.clear();
        stacks_.clear();
      }
      thread_ = process.thread(lane->tid, lane->thread_name);
      return true;
    }
    case Kind::kString: {
      const auto string = decode_record<StringRecord>(words);
      if (!string) return false;
      strings_.set(string->id, process.intern(string->text).value);
      return true;
    }
    case Kind::kFrame: {
      const auto record = decode_record<FrameRecord>(words);
      if (!record) return false;
      Frame frame;
      frame.file = StringId(strings_.get(record->file));
      frame.function = StringId(strings_.get(record->function));
      frame.module = StringId(strings_.get(record->module));
      frame.line = static_cast<uint32_t>(record->line);
      frame.end_line = static_cast<uint32_t>(record->end_line);
      frame.first_line = static_cast<uint32_t>(record->first_line);
      frame.kind = record->kind == 1 ? FrameKind::kNative : FrameKind::kPython;
      if (frame.kind == FrameKind::kNative) frame.offset = record->offset;
      frames_.set(record->id, process.stacks.intern_frame(frame).value);
      return true;
    }
    case Kind::kStack: {
      const auto stack = decode_record<StackRecord>(words);
      if (!stack) return false;
      const StackId parent(stacks_.get(stack->parent));
      stacks_.set(stack->id,
                  process.stacks.intern(parent, FrameId(frames_.get(stack->frame))).value);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace memscope
