// Lets one binary run on every glibc from 2.28: included first into each file of the agent.
//
// glibc 2.32 to 2.34 moved libpthread and libdl into libc and gave their functions new version
// names; asking for the names they had from the beginning means the same functions on both sides of
// that move. The base version of an architecture: sysdeps/unix/sysv/linux/*/shlib-versions.
#pragma once

#if defined(__x86_64__)
#define MEMSCOPE_GLIBC_BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define MEMSCOPE_GLIBC_BASE "GLIBC_2.17"
#endif

#ifdef MEMSCOPE_GLIBC_BASE
#define MEMSCOPE_OLD_NAME(function) \
  __asm__(".symver " #function "," #function "@" MEMSCOPE_GLIBC_BASE)
MEMSCOPE_OLD_NAME(dladdr);
MEMSCOPE_OLD_NAME(dlclose);
MEMSCOPE_OLD_NAME(dlopen);
MEMSCOPE_OLD_NAME(dlsym);
MEMSCOPE_OLD_NAME(pthread_attr_setstacksize);
MEMSCOPE_OLD_NAME(pthread_create);
MEMSCOPE_OLD_NAME(pthread_join);
MEMSCOPE_OLD_NAME(pthread_sigmask);
#undef MEMSCOPE_OLD_NAME
#undef MEMSCOPE_GLIBC_BASE
#endif
