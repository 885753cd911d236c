#include "trace/log_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace memscope {

LogWriter::LogWriter(std::span<std::byte> buffer, int level)
    : buffer_(buffer), context_(ZSTD_createCCtx()), level_(level) {}

LogWriter::~LogWriter() {
  ZSTD_freeCCtx(context_);
}

bool LogWriter::prepare() {
  if (context_ == nullptr || buffer_.size() < kBufferBytes) {
    errno = context_ == nullptr ? ENOMEM : EINVAL;
    return false;
  }
  ZSTD_CCtx_reset(context_, ZSTD_reset_session_and_parameters);
  if (ZSTD_isError(ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level_)) != 0 ||
      ZSTD_isError(ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1)) != 0) {
    errno = EINVAL;
    return false;
  }
  return true;
}

bool LogWriter::resume(int fd, uint64_t end) {
  if (!prepare()) return false;
  fd_ = fd;
  end_ = end;
  return true;
}

bool LogWriter::open(int fd, const LogHeader& header) {
  if (!prepare()) return false;
  LogHeader copy = header;
  copy.magic = kLogMagic;
  copy.header_bytes = sizeof(LogHeader);
  fd_ = fd;
  end_ = 0;
  if (!write_at(0, &copy, sizeof(copy))) {
    fd_ = -1;
    return false;
  }
  end_ = sizeof(copy);
  return true;
}

bool LogWriter::continue_in(int fd, const LogHeader& header) {
  const int fd_before = fd_;
  const uint64_t end_before = end_;
  if (open(fd, header)) return true;
  fd_ = fd_before;
  end_ = end_before;
  return false;
}

bool LogWriter::append(const ChunkMeta& meta, std::span<const std::byte> records) {
  if (records.empty()) return true;
  if (fd_ < 0) {
    errno = EBADF;
    return false;
  }
  if (records.size() > kMaxChunkBytes || records.size() % sizeof(uint64_t) != 0) {
    errno = EINVAL;
    return false;
  }
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.lane = meta.lane;
  header.from = meta.from;
  header.to = meta.from + static_cast<uint32_t>(records.size());
  header.lane_seq = meta.lane_seq;
  header.base_ticks = meta.base_ticks;
  header.last_ticks = meta.last_ticks;
  header.kinds = meta.kinds;
  header.slot_index = meta.slot_index;
  const bool fits = sizeof(header) + ZSTD_compressBound(records.size()) <= buffer_.size();
  if (fits ? compress_whole(header, records) : compress_in_pieces(header, records)) {
    end_ += sizeof(header) + header.compressed_bytes;
    return true;
  }
  const int error = errno;
  // If even this fails, the reader still finds the chunk incomplete, and the next append() writes
  // over it.
  if (ftruncate(fd_, static_cast<off_t>(end_)) != 0) {
  }
  errno = error;
  return false;
}

bool LogWriter::append_chunk(std::span<const std::byte> chunk) {
  if (!write_at(end_, chunk.data(), chunk.size())) return false;
  end_ += chunk.size();
  return true;
}

bool LogWriter::compress_whole(ChunkHeader& header, std::span<const std::byte> records) {
  const size_t size =
      ZSTD_compress2(context_, buffer_.data() + sizeof(header), buffer_.size() - sizeof(header),
                     records.data(), records.size());
  if (ZSTD_isError(size) != 0) {
    errno = EIO;
    return false;
  }
  header.compressed_bytes = static_cast<uint32_t>(size);
  header.header_check = check_of(header);
  std::memcpy(buffer_.data(), &header, sizeof(header));
  return write_at(end_, buffer_.data(), sizeof(header) + size);
}

// The header goes last, so that a reader never takes a part for the whole.
bool LogWriter::compress_in_pieces(ChunkHeader& header, std::span<const std::byte> records) {
  ZSTD_CCtx_reset(context_, ZSTD_reset_session_only);
  ZSTD_CCtx_setPledgedSrcSize(context_, records.size());
  ZSTD_inBuffer in{records.data(), records.size(), 0};
  uint64_t written = 0;
  for (size_t left = 1; left != 0;) {
    ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
    left = ZSTD_compressStream2(context_, &out, &in, ZSTD_e_end);
    if (ZSTD_isError(left) != 0) {
      errno = EIO;
      return false;
    }
    if (!write_at(end_ + sizeof(header) + written, buffer_.data(), out.pos)) return false;
    written += out.pos;
  }
  header.compressed_bytes = static_cast<uint32_t>(written);
  header.header_check = check_of(header);
  return write_at(end_, &header, sizeof(header));
}

bool LogWriter::write_at(uint64_t offset, const void* data, size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size != 0) {
    const ssize_t wrote = pwrite(fd_, from, size, static_cast<off_t>(offset));
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (wrote == 0) {
      errno = ENOSPC;
      return false;
    }
    from += wrote;
    offset += static_cast<uint64_t>(wrote);
    size -= static_cast<size_t>(wrote);
  }
  return true;
}

}  // namespace memscope
