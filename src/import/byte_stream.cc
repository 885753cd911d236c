#include "import/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace memscope {

struct ByteStream::Unpacker {
  z_stream stream{};
  std::vector<uint8_t> packed;
  uint64_t unpacked = 0;
  bool done = false;

  Unpacker() : packed(kWindow) {
    constexpr int kGzip = 16;  // zlib.h: windowBits + 16 reads a gzip header
    inflateInit2(&stream, MAX_WBITS + kGzip);
  }
  ~Unpacker() { inflateEnd(&stream); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
};

ByteStream::ByteStream() = default;
ByteStream::~ByteStream() = default;
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;

Result<ByteStream> ByteStream::open(const std::filesystem::path& path) {
  auto file = InputFile::open(path);
  if (!file) return file.error();
  ByteStream bytes;
  bytes.file_ = std::move(file).value();
  uint8_t magic[2] = {};
  if (bytes.file_.read_at(0, magic, sizeof(magic)) == 2 && magic[0] == 0x1F && magic[1] == 0x8B) {
    bytes.unpacker_ = std::make_unique<Unpacker>();
  }
  bytes.window_.resize(2 * kWindow);
  bytes.at_ = bytes.end_ = bytes.window_.data();
  return bytes;
}

ByteStream ByteStream::of(std::string_view bytes) {
  ByteStream stream;
  stream.window_.assign(bytes.begin(), bytes.end());
  stream.at_ = stream.window_.data();
  stream.end_ = stream.at_ + stream.window_.size();
  return stream;
}

bool ByteStream::refill(size_t count) {
  if (!file_.is_open()) return false;
  const size_t left = ready();
  window_offset_ = offset();
  std::memmove(window_.data(), at_, left);
  at_ = window_.data();
  size_t have = left;
  // One more pass than is needed at once: few calls, whole pages.
  while (have < std::max(count, kWindow)) {
    const size_t got = unpacker_ ? unpack_more(window_.data() + have, window_.size() - have)
                                 : read_more(window_.data() + have, window_.size() - have);
    if (got == 0) break;
    have += got;
  }
  end_ = window_.data() + have;
  return have >= count;
}

size_t ByteStream::read_more(uint8_t* out, size_t size) {
  const size_t got = file_.read_at(file_at_, out, std::min(size, kWindow));
  file_at_ += got;
  if (got == 0 && file_at_ < file_.size() && error_.empty()) {
    error_ = "the file cannot be read from byte " + std::to_string(file_at_) + " on";
  }
  return got;
}

size_t ByteStream::unpack_more(uint8_t* out, size_t size) {
  Unpacker& unpacker = *unpacker_;
  z_stream& stream = unpacker.stream;
  stream.next_out = out;
  stream.avail_out = static_cast<uInt>(size);
  while (stream.avail_out == size && !unpacker.done && error_.empty()) {
    if (stream.avail_in == 0) {
      const size_t got = read_more(unpacker.packed.data(), unpacker.packed.size());
      stream.next_in = unpacker.packed.data();
      stream.avail_in = static_cast<uInt>(got);
      if (got == 0) {
        if (error_.empty()) error_ = "the gzip file is cut off";
        break;
      }
    }
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      // Another member may follow (gzip files may be joined); anything else is padding.
      const bool more = stream.avail_in >= 2 && stream.next_in[0] == 0x1F &&
                        stream.next_in[1] == 0x8B && inflateReset(&stream) == Z_OK;
      unpacker.done = !more;
    } else if (status != Z_OK) {
      error_ = "the gzip data is damaged near byte " + std::to_string(file_at_ - stream.avail_in) +
               " of the file";
    }
  }
  const size_t got = size - stream.avail_out;
  unpacker.unpacked += got;
  if (unpacker.unpacked > kMaxUnpacked) {
    error_ = "it unpacks to more than " + std::to_string(kMaxUnpacked >> 30) + " GiB";
    return 0;
  }
  return got;
}

}  // namespace memscope
