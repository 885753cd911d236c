// Loads the agent as API mode does and stops the test where it says no.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "capture/agent_api.h"

inline const msmemscope_agent_v1& load_agent(const char* path, const char* output) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(3);
  }
  using GetTable = const msmemscope_agent_v1* (*)();
  const auto get = reinterpret_cast<GetTable>(dlsym(library, "msmemscope_agent"));
  const msmemscope_agent_v1& agent = *get();
  if (agent.configure("output_path", output) != 0 || agent.install() != 0) {
    std::fprintf(stderr, "%s\n", agent.last_error());
    std::exit(3);
  }
  return agent;
}

inline std::string agent_status(const msmemscope_agent_v1& agent) {
  std::string text(agent.status(nullptr, 0) + 256, '\0');
  text.resize(agent.status(text.data(), text.size()));
  return text;
}
