#include "capture/elf_object.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace memscope::capture {

namespace {

uintptr_t align_down(uintptr_t address) {
  return address & ~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);
}

}  // namespace

bool ElfObject::read(const dl_phdr_info& info) {
  base_ = info.dlpi_addr;
  name_ = info.dlpi_name == nullptr ? "" : info.dlpi_name;
  segments_ = {info.dlpi_phdr, info.dlpi_phnum};
  const ElfW(Dyn)* dynamic = nullptr;
  for (const ElfW(Phdr) & segment : segments_) {
    if (segment.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(base_ + segment.p_vaddr);
    } else if (segment.p_type == PT_GNU_RELRO) {
      // As the loader rounds it (glibc, _dl_protect_relro): the last page only if it is full.
      relro_begin_ = align_down(base_ + segment.p_vaddr);
      relro_end_ = align_down(base_ + segment.p_vaddr + segment.p_memsz);
    }
  }
  if (dynamic == nullptr) return false;

  const uint32_t* hash = nullptr;
  const uint32_t* sysv_hash = nullptr;
  uintptr_t rela = 0, jmprel = 0;
  size_t rela_bytes = 0, jmprel_bytes = 0, relative_count = 0;
  bool plt_is_rela = true;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t value = dynamic->d_un.d_val;
    // glibc writes run-time addresses over the link-time ones, but not where the section is
    // read-only. A link-time address is smaller than any base but 0.
    const uintptr_t address = value < base_ ? base_ + value : value;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        symtab_ = reinterpret_cast<const ElfW(Sym)*>(address);
        break;
      case DT_STRTAB:
        strtab_ = reinterpret_cast<const char*>(address);
        break;
      case DT_GNU_HASH:
        hash = reinterpret_cast<const uint32_t*>(address);
        break;
      case DT_HASH:
        sysv_hash = reinterpret_cast<const uint32_t*>(address);
        break;
      case DT_RELA:
        rela = address;
        break;
      case DT_RELASZ:
        rela_bytes = value;
        break;
      case DT_RELACOUNT:
        relative_count = value;
        break;
      case DT_JMPREL:
        jmprel = address;
        break;
      case DT_PLTRELSZ:
        jmprel_bytes = value;
        break;
      case DT_PLTREL:
        plt_is_rela = value == DT_RELA;
        break;
      default:
        // DT_RELR holds relative relocations only. DT_REL is not used on 64-bit machines: glibc
        // refuses it there.
        break;
    }
  }
  if (symtab_ == nullptr || strtab_ == nullptr) return false;
  const size_t rela_count = rela == 0 ? 0 : rela_bytes / sizeof(ElfW(Rela));
  const size_t skipped = std::min(relative_count, rela_count);
  relocations_[0] = {reinterpret_cast<const ElfW(Rela)*>(rela) + skipped, rela_count - skipped};
  if (jmprel != 0 && plt_is_rela) {
    relocations_[1] = {reinterpret_cast<const ElfW(Rela)*>(jmprel),
                       jmprel_bytes / sizeof(ElfW(Rela))};
  }

  if (hash != nullptr && hash[0] != 0 && hash[2] != 0) {
    bucket_count_ = hash[0];
    first_hashed_ = hash[1];
    bloom_words_ = hash[2];
    bloom_shift_ = hash[3] % 32;
    bloom_ = reinterpret_cast<const uint64_t*>(hash + 4);
    buckets_ = reinterpret_cast<const uint32_t*>(bloom_ + bloom_words_);
    chains_ = buckets_ + bucket_count_;
    const bool empty =
        std::all_of(buckets_, buckets_ + bucket_count_, [](uint32_t first) { return first == 0; });
    if (!empty) names_end_ = first_hashed_;
  }
  if (names_end_ == 0) {
    // The second word of a DT_HASH table is the number of symbols.
    names_end_ = sysv_hash != nullptr ? sysv_hash[1] : largest_relocated_symbol() + 1;
  }
  return true;
}

bool ElfObject::contains(uintptr_t address) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const ElfW(Phdr) & segment) {
    return segment.p_type == PT_LOAD && address - (base_ + segment.p_vaddr) < segment.p_memsz;
  });
}

bool ElfObject::holds_data(uintptr_t address) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const ElfW(Phdr) & segment) {
    return segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0 &&
           address - (base_ + segment.p_vaddr) < segment.p_memsz;
  });
}

bool ElfObject::same_name(uint32_t index, const char* name) const {
  return strcmp(symbol_name(index), name) == 0;
}

uint32_t ElfObject::largest_relocated_symbol() const {
  uint32_t largest = 0;
  each_symbolic_slot(
      [&](uint32_t symbol, uintptr_t, bool) { largest = std::max(largest, symbol); });
  return largest;
}

}  // namespace memscope::capture
