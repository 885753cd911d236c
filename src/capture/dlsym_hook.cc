#include "capture/dlsym_hook.h"

extern "C" {
__attribute__((visibility("hidden"))) void* memscope_dlsym_original = nullptr;
}

// Written whole in assembly: a C++ function cannot promise to end in a jump (at -O0 it does not),
// and GCC has no naked functions for AArch64.
#if defined(__x86_64__)
// At entry: rdi = handle, rsi = name, rsp = 8 modulo 16.
asm(R"(
  .text
  .p2align 4
  .hidden memscope_dlsym_entry
  .hidden memscope_dlsym_check
  .globl memscope_dlsym_entry
  .type memscope_dlsym_entry, @function
memscope_dlsym_entry:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call memscope_dlsym_check
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  movq memscope_dlsym_original(%rip), %rax
  jmpq *%rax
  .cfi_endproc
  .size memscope_dlsym_entry, . - memscope_dlsym_entry
)");
#elif defined(__aarch64__)
// At entry: x0 = handle, x1 = name, x30 = return address. `hint #34` is `bti c`.
asm(R"(
  .text
  .p2align 4
  .hidden memscope_dlsym_entry
  .hidden memscope_dlsym_check
  .globl memscope_dlsym_entry
  .type memscope_dlsym_entry, %function
memscope_dlsym_entry:
  .cfi_startproc
  hint #34
  stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  mov x29, sp
  stp x0, x1, [sp, #16]
  bl memscope_dlsym_check
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  adrp x16, memscope_dlsym_original
  ldr x16, [x16, #:lo12:memscope_dlsym_original]
  br x16
  .cfi_endproc
  .size memscope_dlsym_entry, . - memscope_dlsym_entry
)");
#endif
