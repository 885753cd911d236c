#include "capture/patch_set.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace memscope::capture {

namespace {

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

// Tells apart objects that were loaded one after the other at the same address: name and program
// headers (sizes, offsets, alignment of every segment).
uint64_t identity_of(const dl_phdr_info& info) {
  uint64_t hash = info.dlpi_phnum;
  for (const char* c = info.dlpi_name; c != nullptr && *c != '\0'; ++c) {
    hash = hash * 31 + static_cast<unsigned char>(*c);
  }
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    hash = mix(hash, uint64_t{segment.p_type} << 32 | segment.p_flags);
    hash = mix(hash, segment.p_vaddr);
    hash = mix(hash, segment.p_filesz);
    hash = mix(hash, segment.p_memsz);
  }
  return hash;
}

uintptr_t load_slot(uintptr_t address) {
  return __atomic_load_n(reinterpret_cast<uintptr_t*>(address), __ATOMIC_ACQUIRE);
}

uintptr_t as_address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

uintptr_t original_of(const PatchSet::Hook& hook) {
  return as_address(__atomic_load_n(hook.spec->original, __ATOMIC_ACQUIRE));
}

}  // namespace

// Stores into slots. A read-only page is opened for the stores to it that follow each other, and
// closed again at the latest when the writer goes.
class PatchSet::PageWriter {
 public:
  PageWriter() = default;
  ~PageWriter() { close(); }
  PageWriter(const PageWriter&) = delete;
  PageWriter& operator=(const PageWriter&) = delete;

  bool store(uintptr_t slot, uintptr_t value, bool relro) {
    if (relro && !open(slot)) return false;
    __atomic_store_n(reinterpret_cast<uintptr_t*>(slot), value, __ATOMIC_RELEASE);
    return true;
  }

 private:
  bool open(uintptr_t slot) {
    const uintptr_t page = slot & ~(page_size_ - 1);
    if (page == page_) return true;
    close();
    if (mprotect(reinterpret_cast<void*>(page), page_size_, PROT_READ | PROT_WRITE) != 0) {
      return false;
    }
    page_ = page;
    return true;
  }
  void close() {
    if (page_ != 0) mprotect(reinterpret_cast<void*>(page_), page_size_, PROT_READ);
    page_ = 0;
  }

  const uintptr_t page_size_ = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t page_ = 0;
};

bool PatchSet::add(const SymbolHook& spec) {
  const size_t index = hook_count();
  for (size_t i = 0; i < index; ++i) {
    if (hooks_[i].spec == &spec) return true;
  }
  if (index == kMaxHooks) return false;
  hooks_[index].spec = &spec;
  hooks_[index].hash = gnu_hash(spec.symbol);
  const size_t bytes = std::min<size_t>(strlen(spec.symbol) + 1, sizeof(uint64_t));
  const uint64_t mask = bytes == sizeof(uint64_t) ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
  NamePrefix prefix{0, mask};
  memcpy(&prefix.bytes, spec.symbol, bytes);
  if (std::find(prefixes_, prefixes_ + prefix_count_, prefix) == prefixes_ + prefix_count_) {
    prefixes_[prefix_count_++] = prefix;
  }
  hook_count_.store(index + 1, std::memory_order_release);
  return true;
}

bool PatchSet::should_skip(const dl_phdr_info& info) const {
  // The loader (it runs its own look-ups while it holds its locks), the vdso, and ourselves.
  if (info.dlpi_addr != 0 &&
      (info.dlpi_addr == getauxval(AT_BASE) || info.dlpi_addr == getauxval(AT_SYSINFO_EHDR))) {
    return true;
  }
  ElfObject object;
  return !object.read(info) || object.contains(as_address(this));
}

uint32_t PatchSet::find_object(const dl_phdr_info& info, bool insert) {
  const uint64_t identity = identity_of(info);
  const auto count = static_cast<uint32_t>(objects_.size());
  uint32_t unused = kNone;
  for (uint32_t step = 0; step < count; ++step) {
    const uint32_t index = (next_object_ + step) % count;
    const Object& object = objects_[index];
    if (!object.alive) {
      unused = index;
    } else if (object.base == info.dlpi_addr && object.identity == identity) {
      next_object_ = index + 1;
      return index;
    }
  }
  if (!insert) return kNone;
  const Object fresh{info.dlpi_addr, identity, true, true, false, should_skip(info)};
  if (unused != kNone) {
    objects_[unused] = fresh;
    return unused;
  }
  return objects_.push(fresh) ? count : kNone;
}

void PatchSet::begin_pass() {
  for (Object& object : objects_) object.present = false;
  for (size_t i = 0; i < hook_count(); ++i) hooks_[i].candidate = kNone;
  paths_.clear();
  next_object_ = 0;
}

void PatchSet::note_object(const dl_phdr_info& info, bool look_again) {
  const uint32_t index = find_object(info, true);
  if (index == kNone) return;
  objects_[index].present = true;
  if (objects_[index].skipped || (objects_[index].scanned && !look_again)) return;
  ElfObject object;
  if (!object.read(info)) return;
  size_t path = SIZE_MAX;
  for (size_t i = 0; i < hook_count(); ++i) {
    Hook& hook = hooks_[i];
    if (hook.found || hook.candidate != kNone) continue;
    const char* file = hook.spec->defined_in;
    if (file != nullptr && !starts_with(base_name(object.name()), file)) continue;
    object.each_export(hook.spec->symbol, hook.hash, [&](uint32_t) { hook.candidate = index; });
    if (hook.candidate == kNone) continue;
    if (path == SIZE_MAX) {
      path = paths_.size();
      for (const char* c = object.name();; ++c) {
        if (!paths_.push(*c)) hook.candidate = kNone;
        if (*c == '\0') break;
      }
    }
    hook.path = path;
  }
}

bool PatchSet::forget_absent() {
  bool lost = false;
  for (Object& object : objects_) object.alive = object.alive && object.present;
  slots_.filter([&](const Slot& slot) { return objects_[slot.object].alive; });
  for (size_t i = 0; i < hook_count(); ++i) {
    if (hooks_[i].found && !objects_[hooks_[i].definer].alive) {
      hooks_[i].found = false;
      lost = true;
    }
  }
  return lost;
}

bool PatchSet::verify() {
  next_object_ = 0;
  slots_.filter([&](const Slot& slot) {
    if (load_slot(slot.address) == as_address(hooks_[slot.hook].spec->replacement)) return true;
    objects_[slot.object].scanned = false;
    return false;
  });
  any_fresh_ = std::any_of(hooks_, hooks_ + hook_count(), [](const Hook& h) { return h.fresh; });
  return any_fresh_ || std::any_of(objects_.begin(), objects_.end(), [](const Object& object) {
           return object.alive && !object.skipped && !object.scanned;
         });
}

// Little-endian, both machines. Past the end of a short name there is whatever follows it in its
// string table; only a load that would cross into another page is made byte by byte.
uint64_t PatchSet::first_bytes(const char* name) {
  constexpr uintptr_t kSmallestPage = 4096;
  uint64_t bytes = 0;
  if (as_address(name) % kSmallestPage <= kSmallestPage - sizeof bytes) {
    memcpy(&bytes, name, sizeof bytes);
  } else {
    memcpy(&bytes, name, strnlen(name, sizeof bytes));
  }
  return bytes;
}

// An object of torch's imports tens of thousands of long names: all but a few end here, after one
// load.
bool PatchSet::may_be_hooked(const char* name) const {
  const uint64_t bytes = first_bytes(name);
  return std::any_of(prefixes_, prefixes_ + prefix_count_, [&](const NamePrefix& prefix) {
    return (bytes & prefix.mask) == prefix.bytes;
  });
}

size_t PatchSet::find_matches(const ElfObject& object, bool fresh_only) {
  matches_.clear();
  const size_t count = hook_count();
  const auto wanted = [&](const Hook& hook) { return hook.found && (!fresh_only || hook.fresh); };
  for (uint32_t symbol = 1; symbol < object.names_end(); ++symbol) {
    const char* name = object.symbol_name(symbol);
    if (!may_be_hooked(name)) continue;
    for (uint32_t i = 0; i < count; ++i) {
      if (wanted(hooks_[i]) && strcmp(hooks_[i].spec->symbol, name) == 0)
        matches_.push({symbol, i});
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!wanted(hooks_[i])) continue;
    object.each_hashed(hooks_[i].spec->symbol, hooks_[i].hash, [&](uint32_t symbol) {
      if (symbol >= object.names_end()) matches_.push({symbol, i});
    });
  }
  std::sort(matches_.begin(), matches_.end(),
            [](const Match& a, const Match& b) { return a.symbol < b.symbol; });
  return matches_.size();
}

bool PatchSet::may_replace(const ElfObject& object, uint32_t object_index, const Match& match,
                           uintptr_t value, bool jump_slot) const {
  if (value == 0) return false;  // a weak import that is absent; the program tests for it
  const Hook& hook = hooks_[match.hook];
  if (value == original_of(hook)) return true;
  // Not bound yet: the slot leads to a stub in its own object. Where the object defines the symbol
  // itself, it will be bound to that definition, which must be the one we call on to.
  return jump_slot && object.contains(value) &&
         (!object.defines(match.symbol) || hook.definer == object_index);
}

void PatchSet::patch_object(const dl_phdr_info& info) {
  const uint32_t index = find_object(info, false);
  if (index == kNone || objects_[index].skipped) return;
  if (objects_[index].scanned && !any_fresh_) return;
  ElfObject object;
  if (!object.read(info)) return;
  const bool fresh_only = objects_[index].scanned;
  objects_[index].scanned = true;
  const size_t match_count = find_matches(object, fresh_only);
  if (match_count == 0) return;
  PageWriter writer;
  object.each_symbolic_slot([&](uint32_t symbol, uintptr_t slot, bool jump_slot) {
    if (symbol < matches_[0].symbol || symbol > matches_[match_count - 1].symbol) return;
    const Match* match =
        std::lower_bound(matches_.begin(), matches_.end(), symbol,
                         [](const Match& m, uint32_t wanted) { return m.symbol < wanted; });
    if (match->symbol != symbol || slot % sizeof(uintptr_t) != 0 || !object.holds_data(slot)) {
      return;
    }
    const uintptr_t value = load_slot(slot);
    const auto replacement = as_address(hooks_[match->hook].spec->replacement);
    if (value == replacement || !may_replace(object, index, *match, value, jump_slot)) return;
    const bool relro = object.in_relro(slot);
    // Noted before it is stored: a fork in between leaves a child that restores it.
    if (!slots_.push({slot, match->hook, index, relro})) return;
    if (!writer.store(slot, replacement, relro)) {
      slots_.pop();
      ++slots_refused_;
    }
  });
}

void PatchSet::end_patching() {
  for (size_t i = 0; i < hook_count(); ++i) hooks_[i].fresh = false;
  slots_.filter([&](const Slot& slot) { return objects_[slot.object].alive; });
  size_t seen = 0, patched = 0, counts[kMaxHooks] = {};
  uint32_t last = kNone;
  for (const Slot& slot : slots_) {
    ++counts[slot.hook];
    patched += slot.object != last ? 1 : 0;
    last = slot.object;
  }
  for (size_t i = 0; i < hook_count(); ++i) hooks_[i].slots = counts[i];
  for (const Object& object : objects_) seen += object.alive ? 1 : 0;
  objects_seen_ = seen;
  objects_patched_ = patched;
  slots_patched_ = slots_.size();
}

void PatchSet::restore_object(const dl_phdr_info& info) {
  const uint32_t index = find_object(info, false);
  if (index == kNone) return;
  ElfObject object;
  if (!object.read(info)) return;
  PageWriter writer;
  slots_.filter([&](const Slot& slot) {
    if (slot.object != index) return true;
    const Hook& hook = hooks_[slot.hook];
    const bool ours = object.contains(slot.address) &&
                      load_slot(slot.address) == as_address(hook.spec->replacement);
    const bool done = ours && writer.store(slot.address, original_of(hook), slot.relro);
    ++(done ? slots_restored_ : slots_left_);
    return false;
  });
}

void PatchSet::forget_everything() {
  slots_.clear();  // what is left of them went with its object
  objects_.clear();
  for (size_t i = 0; i < hook_count(); ++i) {
    hooks_[i].found = false;
    hooks_[i].definer = kNone;
  }
  end_patching();
}

void PatchSet::look_at_everything_again() {
  for (Object& object : objects_) object.scanned = false;
}

PatchCounts PatchSet::counts() const {
  return {.objects_seen = objects_seen_,
          .objects_patched = objects_patched_,
          .slots_patched = slots_patched_,
          .slots_refused = slots_refused_,
          .slots_restored = slots_restored_,
          .slots_left = slots_left_};
}

}  // namespace memscope::capture
