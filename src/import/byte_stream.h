// The bytes of a file from front to back, unpacked where gzip packed it.
//
//   auto opened = ByteStream::open(path);
//   while (bytes.need(9)) { use(bytes.at()); bytes.skip(9); }
//
// Promises
//  * Memory: two windows of kWindow, however long the file or what is packed in it.
//  * No more than kMaxUnpacked bytes come out of a packed file: a few KiB can unpack to anything.
//  * A file that is cut off or damaged ends early; error() says so and where.
// HOT PATH: need(), at(), skip().
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "trace/input_file.h"

namespace memscope {

class ByteStream {
 public:
  static constexpr size_t kWindow = 1 << 20;
  static constexpr uint64_t kMaxUnpacked = uint64_t{64} << 30;

  static Result<ByteStream> open(const std::filesystem::path& path);
  // Of bytes in memory, not packed. They are copied.
  static ByteStream of(std::string_view bytes);

  ByteStream();
  ~ByteStream();
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;

  // Whether `count` bytes, kWindow at most, lie at at(). False only before the end.
  bool need(size_t count) { return static_cast<size_t>(end_ - at_) >= count || refill(count); }
  const uint8_t* at() const { return at_; }
  size_t ready() const { return static_cast<size_t>(end_ - at_); }  // bytes at at()
  void skip(size_t count) { at_ += count; }

  // Of at(), in what was unpacked.
  uint64_t offset() const { return window_offset_ + static_cast<uint64_t>(at_ - window_.data()); }
  bool packed() const { return unpacker_ != nullptr; }
  const std::string& error() const { return error_; }  // "" where the end is the file's

 private:
  struct Unpacker;
  bool refill(size_t count);
  size_t read_more(uint8_t* out, size_t size);
  size_t unpack_more(uint8_t* out, size_t size);

  InputFile file_;
  uint64_t file_at_ = 0;
  std::unique_ptr<Unpacker> unpacker_;
  std::vector<uint8_t> window_;
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint64_t window_offset_ = 0;
  std::string error_;
};

}  // namespace memscope
