#include "symbols/function_table.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace memscope {

FunctionTable::FunctionTable(Dwfl_Module* module) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name =
        dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || section == SHN_UNDEF || address == 0) continue;
    const auto type = GELF_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
    const uint64_t end = address + symbol.st_size;
    functions_.push_back({address, end < address ? address : end, name});
  }
  // Of several names of one place the longest range, then the first by name: the same every time.
  std::sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.end != b.end) return a.end > b.end;
    return std::strcmp(a.name, b.name) < 0;
  });
  functions_.erase(
      std::unique(functions_.begin(), functions_.end(),
                  [](const Function& a, const Function& b) { return a.begin == b.begin; }),
      functions_.end());
}

const char* FunctionTable::name_of(uint64_t address) const {
  auto at = std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](uint64_t wanted, const Function& f) { return wanted < f.begin; });
  // A function may lie within a larger one.
  constexpr int kSteps = 8;
  for (int i = 0; i < kSteps && at != functions_.begin(); ++i) {
    --at;
    if (address < at->end || (i == 0 && at->begin == at->end)) return at->name;
  }
  return nullptr;
}

std::string demangle(const char* name) {
  const size_t length = ::strnlen(name, kMaxName);
  if (length == kMaxName) return std::string(name, length);
  if (name[0] != '_' || (name[1] != 'Z' && name[1] != '_')) return std::string(name, length);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  if (status != 0 || text == nullptr) return std::string(name, length);
  return std::string(text.get(), ::strnlen(text.get(), kMaxName));
}

}  // namespace memscope
