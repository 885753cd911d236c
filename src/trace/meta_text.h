// A string member of a flat JSON object that we have written ourselves (meta.json,
// MSMEMSCOPE_CONFIG), found without a JSON library: for the agent, which has none.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace memscope {

// \" \\ and \/ are the only escapes that matter there. False where the member is not there, is no
// string, or does not fit.
inline bool text_member(const char* json, const char* key, char* out, size_t size) {
  char quoted[64];
  std::snprintf(quoted, sizeof(quoted), "\"%s\"", key);
  const char* at = std::strstr(json, quoted);
  if (at == nullptr) return false;
  at += std::strlen(quoted);
  while (*at == ' ' || *at == ':') ++at;
  if (*at++ != '"') return false;
  size_t length = 0;
  for (; *at != '\0' && *at != '"'; ++at) {
    if (*at == '\\' && (at[1] == '"' || at[1] == '\\' || at[1] == '/')) ++at;
    if (length + 1 >= size) return false;
    out[length++] = *at;
  }
  out[length] = '\0';
  return *at == '"';
}

}  // namespace memscope
