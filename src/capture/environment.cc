#include "capture/environment.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace memscope::capture::environment {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD", kOurs = "MSMEMSCOPE_";
constexpr size_t kMaxKept = 32, kKeptBytes = size_t{32} << 10;

char library[4096];  // this one's path, as it stands in LD_PRELOAD
char kept_text[kKeptBytes];
const char* kept[kMaxKept];  // "NAME=value" each
size_t kept_count = 0;

// "NAME" of "NAME=value".
std::string_view name_of(const char* variable) {
  const char* end = std::strchr(variable, '=');
  return end == nullptr ? std::string_view(variable)
                        : std::string_view(variable, static_cast<size_t>(end - variable));
}

const char* find(const char* const* variables, std::string_view name) {
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    if (name_of(*variables) == name) return *variables;
  }
  return nullptr;
}

const char* value_of(const char* variable) {
  const char* end = std::strchr(variable, '=');
  return end == nullptr ? "" : end + 1;
}

// Calls for each item of a preload list (ld.so(8): split at blanks and colons).
template <typename Action>
void each_item(std::string_view list, Action action) {
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(" :"), list.size());
    if (end != 0) action(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

bool has_agent(std::string_view list) {
  bool found = false;
  each_item(list, [&](std::string_view item) { found = found || item == library; });
  return found;
}

size_t count(const char* const* variables) {
  size_t number = 0;
  while (variables != nullptr && variables[number] != nullptr) ++number;
  return number;
}

// LD_PRELOAD= with the others of `list`, and the agent in front of them if it is wanted.
char* write_preload(std::string_view list, bool with_agent, char* text) {
  char* const begin = text;
  const auto add = [&](std::string_view part) {
    std::memcpy(text, part.data(), part.size());
    text += part.size();
  };
  add(kPreload);
  add("=");
  bool first = true;
  const auto add_item = [&](std::string_view item) {
    if (!first) add(":");
    first = false;
    add(item);
  };
  if (with_agent) add_item(library);
  each_item(list, [&](std::string_view item) {
    if (item != library) add_item(item);
  });
  *text = '\0';
  return first ? nullptr : begin;
}

}  // namespace

void remember() noexcept {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&kept_count), &self) == 0) return;
  const char* list = std::getenv(kPreload.data());
  if (list == nullptr || std::strlen(self.dli_fname) >= sizeof(library)) return;
  std::strcpy(library, self.dli_fname);
  if (!has_agent(list)) {
    library[0] = '\0';
    return;
  }
  size_t used = 0;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const size_t bytes = std::strlen(*variable) + 1;
    if (std::string_view(*variable).substr(0, kOurs.size()) != kOurs) continue;
    if (kept_count == kMaxKept || used + bytes > kKeptBytes) continue;
    kept[kept_count++] = static_cast<const char*>(std::memcpy(kept_text + used, *variable, bytes));
    used += bytes;
  }
}

bool followed() noexcept {
  return library[0] != '\0';
}

bool is_opted_out(const char* const* variables) noexcept {
  const char* disable = find(variables, "MSMEMSCOPE_DISABLE");
  return disable != nullptr && std::strcmp(value_of(disable), "1") == 0;
}

bool is_complete(const char* const* variables, Preload preload) noexcept {
  const char* list = find(variables, kPreload);
  if ((list != nullptr && has_agent(value_of(list))) != (preload == Preload::kKeepUp)) return false;
  for (size_t i = 0; i < kept_count; ++i) {
    if (find(variables, name_of(kept[i])) == nullptr) return false;
  }
  return true;
}

size_t bytes_needed(const char* const* variables) noexcept {
  const char* list = find(variables, kPreload);
  const size_t pointers = count(variables) + kept_count + 2;  // LD_PRELOAD and the null
  const size_t text = kPreload.size() + 1 + std::strlen(library) + 1 +
                      (list == nullptr ? 0 : std::strlen(value_of(list))) + 1;
  return pointers * sizeof(char*) + text;
}

char** complete(char* const* variables, Preload preload, void* room) noexcept {
  auto** const begin = static_cast<char**>(room);
  char** next = begin;
  const size_t pointers = count(variables) + kept_count + 2;
  const char* list = find(variables, kPreload);
  char* text = write_preload(list == nullptr ? "" : value_of(list), preload == Preload::kKeepUp,
                             reinterpret_cast<char*>(begin + pointers));
  if (text != nullptr) *next++ = text;
  for (size_t i = 0; variables != nullptr && variables[i] != nullptr; ++i) {
    if (name_of(variables[i]) != kPreload) *next++ = variables[i];
  }
  for (size_t i = 0; i < kept_count; ++i) {
    if (find(variables, name_of(kept[i])) == nullptr) *next++ = const_cast<char*>(kept[i]);
  }
  *next = nullptr;
  return begin;
}

}  // namespace memscope::capture::environment
