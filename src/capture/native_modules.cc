#include "capture/native_modules.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "capture/fixed_text.h"
#include "capture/lane0.h"
#include "capture/native_stack.h"

namespace memscope::capture::native_modules {
namespace {

struct Written {
  uint64_t serial, base;
  bool present;
};
Written written[ModuleMap::kMaxModules];
size_t written_count = 0;

uint64_t modified_ns(const char* path) {
  struct stat status {};
  if (path[0] != '/' || stat(path, &status) != 0) return 0;
  return static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

void write_if_new(const Module& module, void*) {
  const auto known = std::find_if(written, written + written_count, [&](const Written& entry) {
    return entry.serial == module.serial;
  });
  if (known != written + written_count) {
    known->present = true;
    return;
  }
  if (written_count == ModuleMap::kMaxModules) return;
  written[written_count++] = {module.serial, module.begin, true};
  char hex[2 * Module::kMaxBuildId + 1] = {};
  FixedText text(hex, sizeof hex);
  for (size_t i = 0; i < module.build_id_size; ++i) text.add("%02x", module.build_id[i]);
  write_lane0(ModuleRecord{.path = module.path,
                           .build_id = {hex, text.length()},
                           .base = module.begin,
                           .size = module.end - module.begin,
                           .mtime_ns = modified_ns(module.path),
                           .action = "load"});
}

}  // namespace

void begin() {
  written_count = 0;
}

void write_new() {
  for (size_t i = 0; i < written_count; ++i) written[i].present = false;
  if (!native_stack::for_each_module(write_if_new, nullptr)) return;
  const auto* end = std::remove_if(written, written + written_count, [](const Written& entry) {
    if (entry.present) return false;
    write_lane0(ModuleRecord{.base = entry.base, .action = "unload"});
    return true;
  });
  written_count = static_cast<size_t>(end - written);
}

}  // namespace memscope::capture::native_modules
