// A test fixture that builds small shared libraries with the system's C compiler ($CC, else cc) in
// a directory of its own, and opens them.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace memscope::capture {

class SmallLibraries : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "memscope_libraries_XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  void TearDown() override {
    for (void* handle : handles_) dlclose(handle);
    std::filesystem::remove_all(directory_);
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  // Compiles `source` into lib<name>.so; `suffix` tells the language.
  void build(const std::string& name, const std::string& source, const std::string& flags = "",
             const std::string& suffix = ".c") {
    std::ofstream(path(name + suffix)) << source;
    const char* compiler = getenv("CC");
    const std::string command = std::string(compiler == nullptr ? "cc" : compiler) +
                                " -shared -fPIC -O1 -o " + path("lib" + name + ".so") + " " +
                                path(name + suffix) + " -L" + directory_ + " " + flags;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void* open(const std::string& name, int flags = RTLD_LAZY | RTLD_LOCAL) {
    void* handle = dlopen(path("lib" + name + ".so").c_str(), flags);
    EXPECT_NE(handle, nullptr) << dlerror();
    if (handle != nullptr) handles_.push_back(handle);
    return handle;
  }
  void close(void* handle) {
    std::erase(handles_, handle);
    dlclose(handle);
  }

  std::string directory_;
  std::vector<void*> handles_;
};

}  // namespace memscope::capture
