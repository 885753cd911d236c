// The functions of an object's symbol table, sorted: what is known of it without debug data.
// (libdw's own look-up walks the whole table for each address.) Names stay valid as long as the
// module.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace memscope {

class FunctionTable {
 public:
  explicit FunctionTable(Dwfl_Module* module);
  // As the linker names it; null where no function covers the address.
  const char* name_of(uint64_t address) const;
  size_t size() const { return functions_.size(); }

 private:
  struct Function {
    uint64_t begin, end;  // end == begin: as far as the next one
    const char* name;
  };
  std::vector<Function> functions_;
};

// A C++ or Rust name as people write it; others as they are. At most kMaxName bytes.
inline constexpr size_t kMaxName = 4096;
std::string demangle(const char* name);

}  // namespace memscope
