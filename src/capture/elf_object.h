// One loaded ELF object, as its own dynamic section describes it in memory: its symbols and the
// relocations that name them. Reads only; what it finds is valid while the object stays mapped,
// that is, inside the dl_iterate_phdr call-back it was made in.
//
// Layouts: the System V ABI (gabi, "Dynamic Linking"), its x86-64 and AArch64 supplements, and for
// the GNU hash table glibc's dl-lookup.c and <link.h>.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace memscope::capture {

// The hash of GNU hash tables (h = h * 33 + c, from 5381).
constexpr uint32_t gnu_hash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

class ElfObject {
 public:
  // False where the object has no dynamic section or no symbols: nothing can be patched in it.
  bool read(const dl_phdr_info& info);

  uintptr_t base() const { return base_; }
  const char* name() const { return name_; }  // path; "" for the program itself

  // In one of the object's loaded segments.
  bool contains(uintptr_t address) const;
  // In a segment that the program may write, or in the part made read-only after relocation.
  bool holds_data(uintptr_t address) const;
  // In the pages that the loader made read-only after relocation.
  bool in_relro(uintptr_t address) const { return address >= relro_begin_ && address < relro_end_; }

  const ElfW(Sym) & symbol(uint32_t index) const { return symtab_[index]; }
  const char* symbol_name(uint32_t index) const { return strtab_ + symtab_[index].st_name; }
  bool defines(uint32_t index) const {
    return symtab_[index].st_shndx != SHN_UNDEF && symtab_[index].st_value != 0;
  }

  // Symbols 1 .. names_end()-1 must be compared by name: the imports, which a GNU hash table leaves
  // out. Where that table does not tell where the imports end (GNU ld writes a first index of 1
  // into the empty table of an object that exports nothing) or there is none: all symbols, as
  // counted by DT_HASH or else by what the relocations mention.
  uint32_t names_end() const { return names_end_; }
  // Calls visit(index) for the symbols of this name that the object itself defines and exports.
  template <typename Visit>
  void each_export(const char* name, uint32_t hash, Visit visit) const;
  // Calls visit(index) for the symbols of this name in the GNU hash table: what the object exports,
  // and of a program also the imports whose address it takes.
  template <typename Visit>
  void each_hashed(const char* name, uint32_t hash, Visit visit) const;
  // Calls visit(symbol index, slot address, is_jump_slot) for each relocation that stores a
  // symbol's plain address.
  template <typename Visit>
  void each_symbolic_slot(Visit visit) const;

 private:
  using Relocations = std::span<const ElfW(Rela)>;
#if defined(__x86_64__)
  static constexpr uint32_t kAbsolute = R_X86_64_64, kGlobDat = R_X86_64_GLOB_DAT,
                            kJumpSlot = R_X86_64_JUMP_SLOT;
#elif defined(__aarch64__)
  static constexpr uint32_t kAbsolute = R_AARCH64_ABS64, kGlobDat = R_AARCH64_GLOB_DAT,
                            kJumpSlot = R_AARCH64_JUMP_SLOT;
#else
#error "memscope patches x86-64 and AArch64 objects only"
#endif

  bool same_name(uint32_t index, const char* name) const;
  uint32_t largest_relocated_symbol() const;

  uintptr_t base_ = 0;
  const char* name_ = "";
  std::span<const ElfW(Phdr)> segments_;
  const ElfW(Sym) * symtab_ = nullptr;
  const char* strtab_ = nullptr;
  Relocations relocations_[2];  // DT_RELA past the relative ones, DT_JMPREL
  uintptr_t relro_begin_ = 0, relro_end_ = 0;
  uint32_t names_end_ = 0;
  // Empty (bucket count 0) without a GNU hash table.
  uint32_t bucket_count_ = 0, first_hashed_ = 0, bloom_words_ = 0, bloom_shift_ = 0;
  const uint64_t* bloom_ = nullptr;
  const uint32_t* buckets_ = nullptr;
  const uint32_t* chains_ = nullptr;
};

template <typename Visit>
void ElfObject::each_export(const char* name, uint32_t hash, Visit visit) const {
  if (bucket_count_ == 0) {  // no table: compare, as for the imports
    for (uint32_t i = 1; i < names_end_; ++i) {
      if (defines(i) && same_name(i, name)) visit(i);
    }
    return;
  }
  each_hashed(name, hash, [&](uint32_t index) {
    if (defines(index)) visit(index);
  });
}

template <typename Visit>
void ElfObject::each_hashed(const char* name, uint32_t hash, Visit visit) const {
  if (bucket_count_ == 0) return;
  const uint64_t word = bloom_[hash / 64 % bloom_words_];
  if ((word >> hash % 64 & word >> (hash >> bloom_shift_) % 64 & 1) == 0) return;
  uint32_t index = buckets_[hash % bucket_count_];
  if (index < first_hashed_) return;
  for (;; ++index) {
    const uint32_t entry = chains_[index - first_hashed_];
    if ((entry | 1) == (hash | 1) && same_name(index, name)) visit(index);
    if ((entry & 1) != 0) return;  // the last of its bucket
  }
}

template <typename Visit>
void ElfObject::each_symbolic_slot(Visit visit) const {
  for (const Relocations& table : relocations_) {
    for (const ElfW(Rela) & relocation : table) {
      const uint32_t type = ELF64_R_TYPE(relocation.r_info);
      if (type != kJumpSlot && type != kGlobDat && type != kAbsolute) continue;
      // An addend means an address inside something: not a function's.
      if (type == kAbsolute && relocation.r_addend != 0) continue;
      visit(static_cast<uint32_t>(ELF64_R_SYM(relocation.r_info)), base_ + relocation.r_offset,
            type == kJumpSlot);
    }
  }
}

}  // namespace memscope::capture
