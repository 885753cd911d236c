// Appends chunks to a trace's log (trace.msm). Used by the agent's thread, by the generator of
// synthetic traces and by tests.
//
//  * No exceptions, no allocation but zstd's own context, no descriptor of its own: the caller
//    opens and closes `fd` and lends the buffer that a chunk is compressed into.
//  * A chunk is in the log whole or not at all: when a write fails, the file is cut back to its
//  last
//    whole chunk, errno tells why, and the next append() tries again at the same place.
//  * One thread at a time.
#pragma once

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/layout.h"

namespace memscope {

// What a chunk's header says about its records; sizes and checks are the writer's.
struct ChunkMeta {
  uint32_t lane = 0;
  uint32_t from = 0;  // where in the slot's record area the records begin
  uint64_t lane_seq = 0;
  uint64_t base_ticks = 0;  // clock before the first record
  uint64_t last_ticks = 0;  // clock after the last record
  uint64_t kinds = 0;       // bit k: a record of kind k (k < 64) may be among them
  uint64_t slot_index = ~uint64_t{0};
};

class LogWriter {
 public:
  // Enough for any slot in one write. Larger chunks (lane 0) go out in pieces of this size.
  static constexpr size_t kBufferBytes = sizeof(ChunkHeader) + kSlotBytes + kSlotBytes / 128 + 1024;
  // Level 1 compresses records about as well as 3 does, in half the time.
  static constexpr int kDefaultLevel = 1;

  // `buffer` has kBufferBytes at least and outlives the writer.
  explicit LogWriter(std::span<std::byte> buffer, int level = kDefaultLevel);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Writes the header at the start of `fd`: a regular file, empty, writable, not O_APPEND. False
  // with errno where that fails. `header.magic` and `header_bytes` are filled in here.
  bool open(int fd, const LogHeader& header);

  // As open(), by a writer that has another file open; that one stays where this fails.
  bool continue_in(int fd, const LogHeader& header);

  // Goes on at `end`, behind the last whole chunk of a log that has its header.
  bool resume(int fd, uint64_t end);

  // Appends one chunk; `records` is at most kMaxChunkBytes of whole 8-byte words. Empty ones are
  // skipped. False with errno: EINVAL for a bad size, EIO for a failure of zstd, else write's.
  bool append(const ChunkMeta& meta, std::span<const std::byte> records);

  // Appends a chunk of another log as it is: its header and its frame.
  bool append_chunk(std::span<const std::byte> chunk);

  bool is_open() const { return fd_ >= 0; }
  uint64_t bytes() const { return end_; }  // length of the log: where the next chunk goes
  void release() { fd_ = -1; }             // forgets the descriptor, e.g. after fork() in the child
  void reopened(int fd) { fd_ = fd; }      // the same file by another descriptor

 private:
  bool prepare();
  bool compress_whole(ChunkHeader& header, std::span<const std::byte> records);
  bool compress_in_pieces(ChunkHeader& header, std::span<const std::byte> records);
  bool write_at(uint64_t offset, const void* data, size_t size);

  std::span<std::byte> buffer_;
  ZSTD_CCtx* context_;
  int level_;
  int fd_ = -1;
  uint64_t end_ = 0;
};

}  // namespace memscope
