#include "capture/source_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace memscope::capture::source_files {
namespace {

constexpr size_t kFiles = 1024;
constexpr size_t kPathBytes = 512;
constexpr size_t kSeen = 4096;
constexpr uint64_t kNewerThanProcess = 1, kTruncated = 4;

struct Wanted {
  std::atomic<uint32_t> length = 0;  // 0 until the path is written
  char path[kPathBytes] = {};
};

std::atomic<uint64_t> seen[kSeen];
constinit Wanted wanted[kFiles] = {};  // untouched pages cost nothing
std::atomic<size_t> wanted_count = 0;
size_t taken = 0;

uint64_t hash_of(std::string_view path) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash != 0 ? hash : 1;
}

bool is_users(std::string_view path) {
  if (path.empty() || path[0] != '/') return !path.empty() && path[0] != '<';
  for (const std::string_view place : {"/site-packages/", "/dist-packages/", "/lib/python3"}) {
    if (path.find(place) != std::string_view::npos) return false;
  }
  return true;
}

// True the first time a hash comes, as long as the table has room near its place.
bool first_sight(uint64_t hash) {
  for (size_t probe = 0; probe < 32; ++probe) {
    std::atomic<uint64_t>& place = seen[(hash + probe) % kSeen];
    uint64_t there = place.load(std::memory_order_relaxed);
    if (there == hash) return false;
    if (there == 0 && place.compare_exchange_strong(there, hash)) return true;
    if (there == hash) return false;
  }
  return false;
}

}  // namespace

void want(std::string_view path) noexcept {
  if (path.size() >= kPathBytes || !is_users(path) || !first_sight(hash_of(path))) return;
  const size_t index = wanted_count.fetch_add(1, std::memory_order_relaxed);
  if (index >= kFiles) return;
  std::memcpy(wanted[index].path, path.data(), path.size());
  wanted[index].path[path.size()] = '\0';
  wanted[index].length.store(static_cast<uint32_t>(path.size()), std::memory_order_release);
}

bool take_next(uint64_t process_start_ns, size_t* budget, void (*write)(const SourceRecord&)) {
  while (taken < std::min(wanted_count.load(std::memory_order_relaxed), kFiles)) {
    const Wanted& file = wanted[taken];
    const uint32_t length = file.length.load(std::memory_order_acquire);
    if (length == 0) return false;  // still being written; next time
    ++taken;
    const int fd = open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) continue;
    struct stat status;
    // By the system call: glibc 2.33 renamed the function.
    if (syscall(SYS_fstat, fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
      close(fd);
      continue;
    }
    uint64_t flags = 0;
    const uint64_t changed = static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                             static_cast<uint64_t>(status.st_mtim.tv_nsec);
    if (changed > process_start_ns) flags |= kNewerThanProcess;
    size_t size = static_cast<size_t>(status.st_size);
    if (size > std::min(kMaxFileBytes, *budget)) {
      size = std::min(kMaxFileBytes, *budget);
      flags |= kTruncated;
    }
    // Its own pages rather than the program's heap.
    void* text =
        size == 0 ? MAP_FAILED
                  : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text != MAP_FAILED) {
      const ssize_t got = pread(fd, text, size, 0);
      if (got > 0) {
        *budget -= static_cast<size_t>(got);
        write({.path = {file.path, length},
               .text = {static_cast<const char*>(text), static_cast<size_t>(got)},
               .flags = flags});
      }
      munmap(text, size);
    }
    close(fd);
    return true;
  }
  return false;
}

void reset_after_fork() {
  for (auto& place : seen) place.store(0, std::memory_order_relaxed);
  for (auto& file : wanted) {
    if (file.length.load(std::memory_order_relaxed) == 0) break;
    file.length.store(0, std::memory_order_relaxed);
  }
  wanted_count.store(0, std::memory_order_relaxed);
  taken = 0;
}

}  // namespace memscope::capture::source_files
