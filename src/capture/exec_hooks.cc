#include "capture/exec_hooks.h"

#include <alloca.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capture/environment.h"
#include "capture/fixed_text.h"
#include "capture/launcher_line.h"
#include "capture/settings.h"
#include "trace/program_kind.h"
#include "trace/untraced.h"

namespace memscope::capture::exec_hooks {
namespace {

// More than that is taken from the stack for nobody; the environment then stays as it is.
constexpr size_t kMostRoom = size_t{256} << 10;
constexpr int kMaxInterpreters = 4;  // as binfmt_script allows

void *original_execve, *original_execv, *original_execvp, *original_execvpe, *original_execl,
    *original_execlp, *original_execle, *original_fexecve, *original_execveat, *original_spawn,
    *original_spawnp;

template <typename Function>
Function* call_on(void*& original) {
  return reinterpret_cast<Function*>(__atomic_load_n(&original, __ATOMIC_RELAXED));
}

ProgramKind kind_of(const char* program) {
  char path[Settings::kPathMax], interpreter[Settings::kPathMax];
  std::snprintf(path, sizeof(path), "%s", program);
  for (int i = 0; i < kMaxInterpreters; ++i) {
    const ProgramKind kind = program_kind(path, interpreter, sizeof(interpreter));
    if (kind != ProgramKind::kScript) return kind;
    std::memcpy(path, interpreter, sizeof(path));
  }
  return ProgramKind::kOrdinary;
}

void note(const char* program, const char* why, pid_t parent) {
  char text[kMaxUntracedLine];
  FixedText line(text, sizeof(text));
  line.add("{\"program\":").add_json(program).add(",\"why\":").add_json(why);
  const size_t once = line.length();
  const pid_t pid = getpid() == parent ? 0 : getpid();  // who spawns does not know it yet
  line.add(",\"pid\":%d,\"parent\":%d}\n", static_cast<int>(pid), static_cast<int>(parent));
  if (!line.whole()) return;
  char run[Settings::kPathMax];
  FixedText path(run, sizeof(run));
  path.add("%s/run-%s", settings.output_path, settings.run_id);
  if (path.whole() && add_untraced(run, {text, line.length()}, {text, once})) return;
  tell_launcher(text, kUntracedSuffix);
}

// Calls `action` with what `variables` shall be for `program`; null: it is not known which.
template <typename Action>
int with_environment(const char* program, char* const* variables, pid_t parent, Action action) {
  if (environment::is_opted_out(variables)) return action(variables);
  const ProgramKind kind = program == nullptr ? ProgramKind::kOrdinary : kind_of(program);
  if (const char* why = why_untraced(kind); why != nullptr && program != nullptr) {
    note(program, why, parent);
  }
  const auto preload =
      preload_harms(kind) ? environment::Preload::kTakeOut : environment::Preload::kKeepUp;
  if (environment::is_complete(variables, preload)) return action(variables);
  const size_t bytes = environment::bytes_needed(variables);
  if (bytes > kMostRoom) return action(variables);
  return action(environment::complete(variables, preload, alloca(bytes)));
}

// The file that a name stands for; null where PATH has none. Where the program is not found, the
// real function says so.
const char* find_program(const char* name, char (&path)[Settings::kPathMax]) {
  if (name == nullptr || *name == '\0' || std::strchr(name, '/') != nullptr) return name;
  const char* list = std::getenv("PATH");
  if (list == nullptr) list = "/bin:/usr/bin";
  for (;; ++list) {
    const size_t length = std::strcspn(list, ":");
    FixedText candidate(path, sizeof(path));
    candidate.add("%.*s/%s", static_cast<int>(length), length == 0 ? "." : list, name);
    struct stat status {};
    if (candidate.whole() && access(path, X_OK) == 0 && stat(path, &status) == 0 &&
        S_ISREG(status.st_mode)) {
      return path;
    }
    list += length;
    if (*list == '\0') return nullptr;
  }
}

int on_execve(const char* path, char* const* words, char* const* variables) {
  return with_environment(path, variables, getppid(), [&](char* const* changed) {
    return call_on<decltype(execve)>(original_execve)(path, words, changed);
  });
}

int on_execv(const char* path, char* const* words) {
  return on_execve(path, words, environ);
}

int on_execvpe(const char* file, char* const* words, char* const* variables) {
  char path[Settings::kPathMax];
  return with_environment(
      find_program(file, path), variables, getppid(), [&](char* const* changed) {
        return call_on<decltype(execvpe)>(original_execvpe)(file, words, changed);
      });
}

int on_execvp(const char* file, char* const* words) {
  return on_execvpe(file, words, environ);
}

// The words of a variable list, up to and with its null, into `words`; counted where that is null.
size_t take_words(const char* first, va_list* list, char** words) {
  size_t count = 0;
  for (const char* word = first;; word = va_arg(*list, const char*)) {
    if (words != nullptr) words[count] = const_cast<char*>(word);
    ++count;
    if (word == nullptr) return count;
  }
}

// Calls `action` with these words; `list` is then behind their null.
template <typename Action>
int with_words(const char* first, va_list* list, Action action) {
  va_list counted;
  va_copy(counted, *list);
  const size_t count = take_words(first, &counted, nullptr);
  va_end(counted);
  auto** words = static_cast<char**>(alloca(count * sizeof(char*)));
  take_words(first, list, words);
  return action(words);
}

int on_execl(const char* path, const char* first, ...) {
  va_list list;
  va_start(list, first);
  const int result =
      with_words(first, &list, [&](char* const* words) { return on_execve(path, words, environ); });
  va_end(list);
  return result;
}

int on_execlp(const char* file, const char* first, ...) {
  va_list list;
  va_start(list, first);
  const int result = with_words(
      first, &list, [&](char* const* words) { return on_execvpe(file, words, environ); });
  va_end(list);
  return result;
}

int on_execle(const char* path, const char* first, ...) {
  va_list list;
  va_start(list, first);
  const int result = with_words(first, &list, [&](char* const* words) {
    return on_execve(path, words, va_arg(list, char* const*));
  });
  va_end(list);
  return result;
}

int on_fexecve(int fd, char* const* words, char* const* variables) {
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  return with_environment(path, variables, getppid(), [&](char* const* changed) {
    return call_on<decltype(fexecve)>(original_fexecve)(fd, words, changed);
  });
}

// glibc has it from 2.34 on: its type is written out.
using Execveat = int(int, const char*, char* const*, char* const*, int);
int on_execveat(int fd, const char* path, char* const* words, char* const* variables, int flags) {
  const bool plain = path != nullptr && (fd == AT_FDCWD || *path == '/');
  return with_environment(plain ? path : nullptr, variables, getppid(), [&](char* const* changed) {
    return call_on<Execveat>(original_execveat)(fd, path, words, changed, flags);
  });
}

int on_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
             const posix_spawnattr_t* attributes, char* const* words, char* const* variables) {
  return with_environment(path, variables, getpid(), [&](char* const* changed) {
    return call_on<decltype(posix_spawn)>(original_spawn)(child, path, actions, attributes, words,
                                                          changed);
  });
}

int on_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
              const posix_spawnattr_t* attributes, char* const* words, char* const* variables) {
  char path[Settings::kPathMax];
  return with_environment(find_program(file, path), variables, getpid(), [&](char* const* changed) {
    return call_on<decltype(posix_spawnp)>(original_spawnp)(child, file, actions, attributes, words,
                                                            changed);
  });
}

// Written so that no code need run for it: the library's constructor comes before initialisers.
const SymbolHook kHooks[] = {
    {"execve", reinterpret_cast<void*>(&on_execve), &original_execve, nullptr},
    {"execv", reinterpret_cast<void*>(&on_execv), &original_execv, nullptr},
    {"execvp", reinterpret_cast<void*>(&on_execvp), &original_execvp, nullptr},
    {"execvpe", reinterpret_cast<void*>(&on_execvpe), &original_execvpe, nullptr},
    {"execl", reinterpret_cast<void*>(&on_execl), &original_execl, nullptr},
    {"execlp", reinterpret_cast<void*>(&on_execlp), &original_execlp, nullptr},
    {"execle", reinterpret_cast<void*>(&on_execle), &original_execle, nullptr},
    {"fexecve", reinterpret_cast<void*>(&on_fexecve), &original_fexecve, nullptr},
    {"execveat", reinterpret_cast<void*>(&on_execveat), &original_execveat, nullptr},
    {"posix_spawn", reinterpret_cast<void*>(&on_spawn), &original_spawn, nullptr},
    {"posix_spawnp", reinterpret_cast<void*>(&on_spawnp), &original_spawnp, nullptr},
};

}  // namespace

std::span<const SymbolHook> hooks() {
  return kHooks;
}

}  // namespace memscope::capture::exec_hooks
