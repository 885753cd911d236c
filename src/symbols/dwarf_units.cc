#include "symbols/dwarf_units.h"

#include <dwarf.h>

#include <algorithm>
#include <filesystem>

#include "symbols/function_table.h"

namespace memscope {
namespace {

constexpr int kMaxDepth = 64;  // of scopes within scopes; deeper ones are left out

template <typename Ranges>
void for_each_range(Dwarf_Die& die, const Ranges& take) {
  Dwarf_Addr base = 0, low = 0, high = 0;
  for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &low, &high)) > 0;) {
    // Code that the linker dropped begins at 0.
    if (low != 0 && low < high) take(low, high);
  }
}

std::string name_of(Dwarf_Die& die, bool& full) {
  Dwarf_Attribute attribute;
  full = false;
  for (const unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    if (dwarf_attr_integrate(&die, kind, &attribute) == nullptr) continue;
    if (const char* name = dwarf_formstring(&attribute); name != nullptr) {
      full = kind != DW_AT_name;
      return demangle(name);
    }
  }
  return {};
}

// Absolute where the unit says which folder it was compiled in.
std::string absolute(const char* file, Dwarf_Die& unit) {
  if (file == nullptr || *file == '\0') return {};
  std::filesystem::path path(file);
  Dwarf_Attribute attribute;
  if (path.is_relative() && dwarf_attr(&unit, DW_AT_comp_dir, &attribute) != nullptr) {
    if (const char* folder = dwarf_formstring(&attribute); folder != nullptr) path = folder / path;
  }
  std::string text = path.lexically_normal().string();
  if (text.size() > kMaxName) text.resize(kMaxName);
  return text;
}

// The calls inlined at `pc` in `scope`, outermost first.
void inlined_at(Dwarf_Die& scope, uint64_t pc, int depth, std::vector<Dwarf_Die>& calls) {
  Dwarf_Die child;
  if (depth == kMaxDepth || dwarf_child(&scope, &child) != 0) return;
  do {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block &&
        tag != DW_TAG_try_block && tag != DW_TAG_catch_block) {
      continue;
    }
    if (dwarf_haspc(&child, pc) != 1) continue;
    if (tag == DW_TAG_inlined_subroutine) calls.push_back(child);
    inlined_at(child, pc, depth + 1, calls);
    return;
  } while (dwarf_siblingof(&child, &child) == 0);
}

}  // namespace

DwarfUnits::DwarfUnits(Dwarf* dwarf) {
  Dwarf_CU* cu = nullptr;
  Dwarf_Die die;
  while (dwarf_get_units(dwarf, cu, &cu, nullptr, nullptr, &die, nullptr) == 0) {
    if (dwarf_tag(&die) != DW_TAG_compile_unit && dwarf_tag(&die) != DW_TAG_skeleton_unit) continue;
    units_.push_back(die);
    add_ranges(static_cast<uint32_t>(units_.size() - 1));
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.low < b.low; });
}

void DwarfUnits::add_ranges(uint32_t unit) {
  for_each_range(units_[unit], [&](uint64_t low, uint64_t high) {
    ranges_.push_back({low, high, unit});
  });
}

uint32_t DwarfUnits::unit_of(uint64_t pc) const {
  auto at = std::upper_bound(ranges_.begin(), ranges_.end(), pc,
                             [](uint64_t wanted, const Range& r) { return wanted < r.low; });
  constexpr int kSteps = 8;  // of ranges that overlap
  for (int i = 0; i < kSteps && at != ranges_.begin(); ++i) {
    --at;
    if (pc < at->high) return at->unit;
  }
  return kNone;
}

void DwarfUnits::index_functions(Dwarf_Die& parent, int depth) {
  Dwarf_Die child;
  if (depth == kMaxDepth || dwarf_child(&parent, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        for_each_range(child, [&](uint64_t low, uint64_t high) {
          functions_.push_back({low, high, child});
        });
        index_functions(child, depth + 1);  // local classes, lambdas
        break;
      case DW_TAG_lexical_block:
      case DW_TAG_inlined_subroutine:
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
        index_functions(child, depth + 1);
        break;
      default:
        break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

const DwarfUnits::Function* DwarfUnits::function_at(uint64_t pc) const {
  auto at = std::upper_bound(functions_.begin(), functions_.end(), pc,
                             [](uint64_t wanted, const Function& f) { return wanted < f.low; });
  constexpr int kSteps = 8;
  for (int i = 0; i < kSteps && at != functions_.begin(); ++i) {
    --at;
    if (pc < at->high) return &*at;
  }
  return nullptr;
}

std::string DwarfUnits::file_of_call(Dwarf_Die& call) {
  Dwarf_Attribute attribute;
  Dwarf_Word index = 0;
  if (dwarf_attr(&call, DW_AT_call_file, &attribute) == nullptr ||
      dwarf_formudata(&attribute, &index) != 0) {
    return {};
  }
  Dwarf_Die& unit = units_[indexed_];
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count) return {};
  return absolute(dwarf_filesrc(files, index, nullptr, nullptr), unit);
}

bool DwarfUnits::describe(uint32_t unit, uint64_t pc, std::vector<AnswerSink::Line>& lines) {
  lines.clear();
  Dwarf_Die& die = units_[unit];
  if (indexed_ != unit) {
    indexed_ = unit;
    functions_.clear();
    index_functions(die, 0);
    std::sort(functions_.begin(), functions_.end(),
              [](const Function& a, const Function& b) { return a.low < b.low; });
  }
  AnswerSink::Line innermost;
  if (Dwarf_Line* line = dwarf_getsrc_die(&die, pc); line != nullptr) {
    int number = 0;
    if (dwarf_lineno(line, &number) == 0 && number > 0) {
      innermost.line = static_cast<uint32_t>(number);
    }
    innermost.file = absolute(dwarf_linesrc(line, nullptr, nullptr), die);
  }
  const Function* function = function_at(pc);
  if (function == nullptr) {
    if (!innermost.file.empty()) lines.push_back(std::move(innermost));
    return false;
  }
  std::vector<Dwarf_Die> scopes{function->die};
  inlined_at(scopes[0], pc, 0, scopes);
  AnswerSink::Line here = std::move(innermost);
  bool full = false;
  for (size_t i = scopes.size(); i-- > 0;) {
    here.function = name_of(scopes[i], full);
    here.inlined = i != 0;
    lines.push_back(std::move(here));
    if (i == 0) break;
    // The frame around it stands at the call.
    here = {};
    here.file = file_of_call(scopes[i]);
    Dwarf_Attribute attribute;
    Dwarf_Word line = 0;
    if (dwarf_attr(&scopes[i], DW_AT_call_line, &attribute) != nullptr &&
        dwarf_formudata(&attribute, &line) == 0) {
      here.line = static_cast<uint32_t>(std::min<Dwarf_Word>(line, UINT32_MAX));
    }
  }
  return full;
}

}  // namespace memscope
