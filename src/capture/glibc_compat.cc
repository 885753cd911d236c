// libstdc++'s reference counts ask glibc >= 2.32 by this name whether there is only one thread. The
// agent's own copy, hidden, says no: correct everywhere, and one glibc version fewer to depend on.
extern "C" {
extern char __libc_single_threaded;  // NOLINT(bugprone-reserved-identifier)
char __libc_single_threaded = 0;     // NOLINT(bugprone-reserved-identifier)
}
