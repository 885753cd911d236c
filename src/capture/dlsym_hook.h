// The replacement of dlsym: asks elf_patch whether new objects came, then jumps on to the real
// dlsym with the caller's return address untouched, so that RTLD_NEXT and RTLD_DEFAULT still mean
// the caller's object. An importer calls dlopen and then dlsym, which is how objects are noticed
// without wrapping dlopen (that would change whose RUNPATH is searched).
//
// Guarantees: arguments, return address and stack are as the caller left them; errno is kept.
#pragma once

extern "C" {
// The hook's entry, to be stored into slots. Not callable from C++: its frame is not a C++ one.
void memscope_dlsym_entry(void);
// Where it jumps to; set before the first slot is patched.
extern void* memscope_dlsym_original;
// What it calls first (in elf_patch.cc). `handle` is dlsym's first argument.
void memscope_dlsym_check(void* handle) noexcept;
}
