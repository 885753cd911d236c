// What a chunk's header must satisfy before anything is done by it.
#pragma once

#include <zstd.h>

#include "trace/layout.h"

namespace memscope {

// What is wrong with a chunk's header, nullptr if nothing.
inline const char* fault_of(const ChunkHeader& header) {
  if (header.magic != kChunkMagic) return "no chunk starts here";
  if (header.header_check != check_of(header)) return "the chunk's header is damaged";
  if (header.to <= header.from || (header.to - header.from) % sizeof(uint64_t) != 0 ||
      header.from % sizeof(uint64_t) != 0) {
    return "the chunk's range is not one";
  }
  const uint32_t size = header.to - header.from;
  if (size > kMaxChunkBytes || (header.lane != 0 && header.to > kSlotRecordBytes)) {
    return "the chunk is larger than a slot";
  }
  if (header.compressed_bytes == 0 || header.compressed_bytes > ZSTD_compressBound(size)) {
    return "the chunk's compressed size is impossible";
  }
  return nullptr;
}

}  // namespace memscope
