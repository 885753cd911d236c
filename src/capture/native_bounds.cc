#include "capture/native_bounds.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>

namespace memscope::capture::native_bounds {
namespace {

uint64_t program_stack_end = 0;

// The kernel keeps so much below the first stack's end free of other mappings, whatever the limit
// on its size is (mmap_base() in arch/x86/mm/mmap.c and mm/util.c: MIN_GAP).
constexpr uint64_t kFirstStackRoom = uint64_t{128} << 20;

struct Mapping {
  uint64_t begin = 0, end = 0;
  bool holds(uint64_t address) const { return address - begin < end - begin; }
};

// The writable mapping that holds `address`.
Mapping find_mapping(uint64_t address) {
  Mapping found;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return found;
  char text[4096];
  size_t used = 0;
  bool done = false;
  while (!done) {
    const ssize_t got = read(fd, text + used, sizeof text - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
    text[used] = '\0';
    char* line = text;
    for (char* end; !done && (end = std::strchr(line, '\n')) != nullptr; line = end + 1) {
      Mapping mapping;
      bool writable = false;
      if (!parse_mapping(line, &mapping.begin, &mapping.end, &writable)) continue;
      if (mapping.holds(address) && writable) found = mapping;
      done = mapping.begin > address || mapping.holds(address);
    }
    used -= static_cast<size_t>(line - text);
    std::memmove(text, line, used);
    if (used == sizeof text - 1) used = 0;  // a path longer than any: not one of ours
  }
  close(fd);
  return found;
}

}  // namespace

bool parse_mapping(const char* line, uint64_t* begin, uint64_t* end, bool* writable) noexcept {
  const auto number = [&line](uint64_t* value) {
    const char* first = line;
    for (*value = 0;; ++line) {
      if (*line >= '0' && *line <= '9') {
        *value = *value << 4 | static_cast<uint64_t>(*line - '0');
      } else if (*line >= 'a' && *line <= 'f') {
        *value = *value << 4 | static_cast<uint64_t>(*line - 'a' + 10);
      } else {
        return line != first;
      }
    }
  };
  if (!number(begin) || *line++ != '-' || !number(end) || *line++ != ' ') return false;
  *writable = line[0] == 'r' && line[1] == 'w';
  return true;
}

bool prepare() noexcept {
  if (program_stack_end != 0) return true;
  const auto* end = static_cast<void* const*>(dlsym(RTLD_DEFAULT, "__libc_stack_end"));
  if (end == nullptr || *end == nullptr) return false;
  program_stack_end = reinterpret_cast<uint64_t>(*end);
  return true;
}

StackBounds find(uint64_t sp) noexcept {
  const uint64_t room = program_stack_end - kFirstStackRoom;
  if (sp >= room && sp < program_stack_end) return {room, program_stack_end};
  const int saved_errno = errno;
  const auto control_block = static_cast<uint64_t>(pthread_self());
  StackBounds bounds;
  if (sp < control_block) {
    const Mapping mapping = find_mapping(control_block);
    if (mapping.holds(sp)) bounds = {mapping.begin, control_block};
  }
  errno = saved_errno;
  return bounds;
}

}  // namespace memscope::capture::native_bounds
