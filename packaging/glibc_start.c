// The start of a program that is linked against glibc 2.28 (glibc_stubs.py) by a newer one's
// crt1.o.
//
// glibc 2.34 took the walk over a program's constructors out of crt1.o and into a new version of
// __libc_start_main. The old version wants it as an argument, which a new crt1.o leaves null:
// without this file no constructor of the program itself would run on an older glibc.
#include <stddef.h>

typedef void (*Hook)(int, char**, char**);
extern Hook __init_array_start[] __attribute__((visibility("hidden")));
extern Hook __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void);

static void run_constructors(int argc, char** argv, char** envp) {
  _init();
  for (Hook* hook = __init_array_start; hook < __init_array_end; ++hook) (*hook)(argc, argv, envp);
}

typedef int (*Main)(int, char**, char**);
extern int start_main_2_28(Main, int, char**, Hook, void (*)(void), void (*)(void), void*);
#if defined(__x86_64__)
__asm__(".symver start_main_2_28, __libc_start_main@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver start_main_2_28, __libc_start_main@GLIBC_2.17");
#else
#error "which version did __libc_start_main have here in glibc 2.28?"
#endif

__attribute__((visibility("hidden"))) int __libc_start_main(Main main, int argc, char** argv,
                                                            Hook init, void (*fini)(void),
                                                            void (*rtld_fini)(void),
                                                            void* stack_end) {
  return start_main_2_28(main, argc, argv, init != NULL ? init : run_constructors, fini, rtld_fini,
                         stack_end);
}
