// Small tables as bytes: one description of a table both writes and reads it.
//
//   template <typename Io> void fields(Io& io, Entry& e) { io(e.name), io(e.count); }
//   TableWriter out;   fields(out, entry);   write_whole(path, out.bytes());
//   TableReader in(bytes);   fields(in, entry);   if (!in.ok() || !in.at_end()) ...damaged...
//
// A reader never goes beyond its bytes and never makes more elements than they could hold.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>

namespace memscope::view {

class TableWriter {
 public:
  static constexpr bool kReads = false;
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(const T& value) { append(&value, sizeof(value)); }
  void operator()(const std::string& text) {
    operator()(uint64_t{text.size()});
    append(text.data(), text.size());
  }
  bool ok() const { return true; }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* from, size_t size) {
    bytes_.append(static_cast<const char*>(from), size);
  }
  std::string bytes_;
};

class TableReader {
 public:
  static constexpr bool kReads = true;
  explicit TableReader(std::string_view bytes) : left_(bytes) {}
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(T& value) {
    if (left_.size() < sizeof(T)) return fail();
    std::memcpy(&value, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
  }
  void operator()(std::string& text) {
    uint64_t size = 0;
    operator()(size);
    if (size > left_.size()) return fail();
    text.assign(left_.data(), size);
    left_.remove_prefix(size);
  }
  // How many elements can follow, of at least `each` bytes.
  bool fits(uint64_t count, size_t each) {
    if (count > left_.size() / each) fail();
    return ok_;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

 private:
  void fail() {
    ok_ = false;
    left_ = {};
  }
  std::string_view left_;
  bool ok_ = true;
};

template <typename Io, typename List, typename Each>
void io_list(Io& io, List& items, Each each) {
  uint64_t count = items.size();
  io(count);
  if constexpr (Io::kReads) {
    if (!io.ok() || !io.fits(count, 1)) return;
    items.clear();
    for (uint64_t i = 0; i < count && io.ok(); ++i) each(items.emplace_back());
  } else {
    for (auto& item : items) each(item);
  }
}

// What a file begins with; false where another's was read.
template <typename Io>
bool io_heading(Io& io, uint64_t magic, uint32_t version) {
  const uint64_t our_magic = magic;
  const uint32_t our_version = version;
  io(magic), io(version);
  return io.ok() && magic == our_magic && version == our_version;
}

// A file that is there whole or not at all; false where it could not be made.
bool write_whole(const std::filesystem::path& path, std::string_view bytes);

}  // namespace memscope::view
