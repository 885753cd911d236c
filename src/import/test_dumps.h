// Helpers of this room's tests: small dumps, and what comes out of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "import/open_input.h"
#include "trace/test_directory.h"

namespace memscope {

inline constexpr std::string_view kHeader =
    "ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,"
    "Call Stack(Python),Call Stack(C)\n";

// A csv of these lines.
inline std::string csv(const std::string& rows) {
  return std::string(kHeader) + rows;
}

// A file of its own directory that is opened at once.
class OpenedFile {
 public:
  explicit OpenedFile(const std::string& text, const char* name = "memscope_dump_1.csv") {
    path_ = directory_ / name;
    write_bytes(path_, text);
    auto opened = open_input(path_);
    if (opened) {
      inputs_ = std::move(opened).value();
    } else {
      error_ = opened.error().message;
    }
  }
  const std::filesystem::path& path() const { return path_; }
  const std::string& error() const { return error_; }
  std::vector<Input>& inputs() { return inputs_; }
  Input& input() { return inputs_.at(0); }

  struct Copied {
    Event event;
    std::vector<uint64_t> words;
  };
  // All events of an input.
  std::vector<Copied> events(size_t input = 0) {
    std::vector<Copied> copies;
    inputs_.at(input).visit([&](auto& source) {
      std::vector<Event> batch(7);  // small, so that batches end everywhere
      while (const size_t count = source.next_batch(batch)) {
        for (size_t i = 0; i < count; ++i) {
          copies.push_back({batch[i], {batch[i].words.begin(), batch[i].words.end()}});
          copies.back().event.words = {};
        }
      }
    });
    return copies;
  }
  // The records of a kind.
  template <typename Record>
  std::vector<std::pair<Event, std::vector<uint64_t>>> records(size_t input = 0) {
    std::vector<std::pair<Event, std::vector<uint64_t>>> found;
    for (Copied& copied : events(input)) {
      if (copied.event.kind == EventKind::kRecord &&
          copied.event.record_kind == static_cast<uint8_t>(Record::kKind)) {
        found.emplace_back(copied.event, std::move(copied.words));
      }
    }
    return found;
  }

 private:
  TestDirectory directory_;
  std::filesystem::path path_;
  std::vector<Input> inputs_;
  std::string error_;
};

// "alloc 1000+64 @1 pool npu:0", one a block's event, in order.
inline std::vector<std::string> block_events(OpenedFile& file, size_t input = 0) {
  std::vector<std::string> lines;
  for (const auto& [event, words] : file.events(input)) {
    const char* kind = event.kind == EventKind::kAlloc  ? "alloc"
                       : event.kind == EventKind::kFree ? "free"
                       : event.kind == EventKind::kSeed ? "seed"
                                                        : nullptr;
    if (kind == nullptr) continue;
    char address[32];
    std::snprintf(address, sizeof(address), "%lx", static_cast<unsigned long>(event.addr));
    lines.push_back(std::string(kind) + " " + address + "+" + std::to_string(event.size) + " @" +
                    std::to_string(event.time) + " " + std::string(layer_name(event.where.layer)) +
                    " " + device_name(event.where.device));
  }
  return lines;
}

}  // namespace memscope
