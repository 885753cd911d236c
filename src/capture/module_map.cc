#include "capture/module_map.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cstring>

namespace memscope::capture {
namespace {

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

// Word by word, since others may be reading or writing at the same time. No store is seen before
// the version that was stored before it, and a version loaded afterwards is not older than the
// words.
template <typename T>
void copy_words(const T& from, T* to) {
  const auto* source = reinterpret_cast<const uint64_t*>(&from);
  auto* target = reinterpret_cast<uint64_t*>(to);
  for (size_t i = 0; i < sizeof(T) / sizeof(uint64_t); ++i) {
    __atomic_store_n(target + i, __atomic_load_n(source + i, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
  }
}

const uint8_t* bytes_at(uint64_t address) {
  return reinterpret_cast<const uint8_t*>(address);
}

// The description of the note NT_GNU_BUILD_ID, if `segment` has it (gabi, "Note Section"; names
// and descriptions are padded to the segment's alignment).
void read_build_id(const uint8_t* at, size_t size, size_t align, Module* module) {
  align = align == 8 ? 8 : 4;
  const auto padded = [align](size_t bytes) { return (bytes + align - 1) & ~(align - 1); };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t description = sizeof note + padded(note.n_namesz);
    const size_t all = description + padded(note.n_descsz);
    if (all > size) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(at + sizeof note, "GNU", 4) == 0) {
      module->build_id_size =
          static_cast<uint32_t>(std::min(static_cast<size_t>(note.n_descsz), Module::kMaxBuildId));
      std::memcpy(module->build_id, at + description, module->build_id_size);
      return;
    }
    at += all;
    size -= all;
  }
}

// What the program headers tell. False where nothing is loaded.
bool describe(const dl_phdr_info& info, Module* module) {
  module->bias = info.dlpi_addr;
  module->begin = UINT64_MAX;
  uint64_t hash = info.dlpi_phnum;
  for (const char* c = info.dlpi_name; c != nullptr && *c != '\0'; ++c) {
    hash = hash * 31 + static_cast<unsigned char>(*c);
  }
  const ElfW(Phdr)* frames = nullptr;
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    hash = mix(mix(hash, uint64_t{segment.p_type} << 32 | segment.p_flags), segment.p_vaddr);
    hash = mix(mix(hash, segment.p_filesz), segment.p_memsz);
    const uint64_t begin = module->bias + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      module->begin = std::min(module->begin, begin);
      module->end = std::max(module->end, begin + segment.p_memsz);
    } else if (segment.p_type == PT_GNU_EH_FRAME) {
      frames = &segment;
    }
  }
  if (module->begin >= module->end) return false;
  const auto loaded = [&](const ElfW(Phdr) & inner, const ElfW(Phdr) & outer) {
    return outer.p_type == PT_LOAD && (outer.p_flags & PF_R) != 0 &&
           inner.p_vaddr >= outer.p_vaddr &&
           inner.p_vaddr + inner.p_filesz <= outer.p_vaddr + outer.p_filesz;
  };
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& outer = info.dlpi_phdr[i];
    if (outer.p_type != PT_LOAD) continue;
    const uint64_t begin = module->bias + outer.p_vaddr;
    if (frames != nullptr && loaded(*frames, outer)) {
      module->cfi = {.header = bytes_at(module->bias + frames->p_vaddr),
                     .readable_begin = bytes_at(begin),
                     .readable_end = bytes_at(begin + outer.p_filesz)};
    }
    for (size_t k = 0; k < info.dlpi_phnum && module->build_id_size == 0; ++k) {
      const ElfW(Phdr)& note = info.dlpi_phdr[k];
      if (note.p_type != PT_NOTE || !loaded(note, outer)) continue;
      read_build_id(bytes_at(module->bias + note.p_vaddr), note.p_filesz, note.p_align, module);
    }
  }
  for (size_t i = 0; i < module->build_id_size; ++i) hash = mix(hash, module->build_id[i]);
  module->identity = hash;
  return true;
}

}  // namespace

struct ModuleMap::Pass {
  ModuleMap* map;
  size_t before;         // places in use when it began
  size_t known = 0;      // of the objects found, those that were there
  size_t count = 0;      // in sorting_
  size_t next_free = 0;  // no free place before it
  size_t expected = 0;   // place where the loader's next object should be: it keeps its order
  size_t left_out = 0;
  uint64_t loads = 0;
  std::bitset<kMaxModules> seen;  // places that the new order names
};

void ModuleMap::attach(void* memory) noexcept {
  auto* at = static_cast<char*>(memory);
  const auto take = [&at](size_t bytes) {
    char* taken = at;
    at += bytes;
    return taken;
  };
  auto* modules = reinterpret_cast<Module*>(take(kMaxModules * sizeof(Module)));
  for (Place*& order : orders_) {
    order = reinterpret_cast<Place*>(take(kMaxModules * sizeof(Place)));
  }
  sorting_ = reinterpret_cast<Place*>(take(kMaxModules * sizeof(Place)));
  names_ = take(kNameBytes);
  char path[PATH_MAX];
  const int saved_errno = errno;
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  errno = saved_errno;
  path[length > 0 ? length : 0] = '\0';
  program_ = keep_name(path);
  modules_ = modules;
}

const char* ModuleMap::keep_name(const char* name) {
  for (size_t at = 0; at < names_used_; at += std::strlen(names_ + at) + 1) {
    if (std::strcmp(names_ + at, name) == 0) return names_ + at;
  }
  const size_t bytes = std::strlen(name) + 1;
  if (bytes > kNameBytes - names_used_) return "";
  char* kept = names_ + names_used_;
  std::memcpy(kept, name, bytes);
  names_used_ += bytes;
  return kept;
}

// In a signal handler the holder may be this very thread: it is not waited for without end.
bool ModuleMap::lock() {
  for (int attempts = 0; attempts < 10'000; ++attempts) {
    if (!locked_.exchange(true, std::memory_order_acquire)) return true;
    sched_yield();
  }
  asked_again_.store(true, std::memory_order_release);
  return false;
}

void ModuleMap::note(const dl_phdr_info& info, Pass& pass) {
  Module module;
  if (!describe(info, &module)) return;
  if (pass.count == kMaxModules) {
    ++pass.left_out;
    return;
  }
  for (size_t step = 0; step < pass.before; ++step) {
    const size_t i = (pass.expected + step) % pass.before;
    const Module& known = modules_[i];
    if (known.serial == 0 || known.begin != module.begin || known.identity != module.identity) {
      continue;
    }
    sorting_[pass.count++] = {module.begin, i};
    pass.seen[i] = true;
    ++pass.known;
    pass.expected = i + 1;
    return;
  }
  // Free places are those that the order in force does not name: find() may be reading the others.
  while (pass.next_free < kMaxModules && modules_[pass.next_free].serial != 0) ++pass.next_free;
  if (pass.next_free == kMaxModules) {
    ++pass.left_out;
    return;
  }
  module.serial = next_serial_++;
  const bool program = info.dlpi_name == nullptr || info.dlpi_name[0] == '\0';
  module.path = program ? program_ : keep_name(info.dlpi_name);
  pass.seen[pass.next_free] = true;
  copy_words(module, &modules_[pass.next_free]);
  sorting_[pass.count++] = {module.begin, pass.next_free};
  places_used_ = std::max(places_used_, pass.next_free + 1);
}

bool ModuleMap::update() noexcept {
  if (!attached()) return false;
  const int saved_errno = errno;
  bool gone = false;
  while (lock()) {
    asked_again_.store(false, std::memory_order_relaxed);
    gone = build() || gone;
    locked_.store(false, std::memory_order_release);
    if (!asked_again_.load(std::memory_order_relaxed)) break;
  }
  errno = saved_errno;
  return gone;
}

bool ModuleMap::build() {
  const uint64_t version = version_.load(std::memory_order_relaxed);
  Pass pass{.map = this, .before = places_used_};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& p = *static_cast<Pass*>(data);
        p.loads = info->dlpi_adds + info->dlpi_subs;
        p.map->note(*info, p);
        return 0;
      },
      &pass);
  loads_.store(pass.loads, std::memory_order_relaxed);
  std::sort(sorting_, sorting_ + pass.count,
            [](const Place& a, const Place& b) { return a.begin < b.begin; });
  Place* order = orders_[(version + 1) % 2];
  for (size_t i = 0; i < pass.count; ++i) copy_words(sorting_[i], &order[i]);
  counts_[(version + 1) % 2].store(pass.count, std::memory_order_relaxed);
  left_out_.store(pass.left_out, std::memory_order_relaxed);
  const bool gone = pass.known < count_of(version);
  version_.store(version + 1, std::memory_order_release);
  // Free from now on: who still sees the last version will see this one after reading them.
  for (size_t i = 0; i < pass.before; ++i) {
    if (!pass.seen[i]) __atomic_store_n(&modules_[i].serial, 0, __ATOMIC_RELEASE);
  }
  return gone;
}

bool ModuleMap::loader_changed() const noexcept {
  uint64_t loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_adds + info->dlpi_subs;
        return 1;
      },
      &loads);
  return loads != loads_.load(std::memory_order_relaxed);
}

bool ModuleMap::copy(uint64_t version, size_t index, Module* out) const {
  Place place;
  copy_words(order_of(version)[index], &place);
  if (place.module >= kMaxModules) return false;  // torn
  copy_words(modules_[place.module], out);
  return version_.load(std::memory_order_relaxed) == version;
}

bool ModuleMap::find(uint64_t pc, Module* out) const noexcept {
  if (!attached()) return false;
  const uint64_t version = version_.load(std::memory_order_acquire);
  const Place* order = order_of(version);
  size_t low = 0, high = count_of(version);  // all before low begin at or before pc
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (__atomic_load_n(&order[middle].begin, __ATOMIC_ACQUIRE) <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low != 0 && copy(version, low - 1, out) && pc < out->end;
}

bool ModuleMap::reset_after_fork() noexcept {
  if (!attached() || !locked_.load(std::memory_order_relaxed)) return false;
  // It may have been anywhere: nothing is known, and no place in use, until the next update.
  const uint64_t version = version_.load(std::memory_order_relaxed);
  counts_[(version + 1) % 2].store(0, std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_release);
  for (size_t i = 0; i < kMaxModules; ++i) modules_[i].serial = 0;
  loads_.store(0, std::memory_order_relaxed);
  locked_.store(false, std::memory_order_release);
  return true;
}

}  // namespace memscope::capture
