// The debug data of one object: for an address its line, its function, and the calls inlined there.
//
// Units are indexed by their ranges of addresses (not every compiler writes .debug_aranges, which
// libdw's own look-up needs); the functions of a unit are indexed when an address of it is asked
// for, and forgotten with the next unit: ask unit by unit.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <vector>

#include "symbols/look_up.h"

namespace memscope {

class DwarfUnits {
 public:
  static constexpr uint32_t kNone = ~0u;

  explicit DwarfUnits(Dwarf* dwarf);
  // The unit with code at `pc`, an address of the debug data; kNone.
  uint32_t unit_of(uint64_t pc) const;
  // The frames at `pc`, innermost first. Functions without a name have "". Whether the outermost
  // has its full name, that for the linker; local functions and lambdas have "run" or "operator()".
  bool describe(uint32_t unit, uint64_t pc, std::vector<AnswerSink::Line>& lines);

 private:
  struct Range {
    uint64_t low, high;
    uint32_t unit;
  };
  struct Function {
    uint64_t low, high;
    Dwarf_Die die;
  };
  void add_ranges(uint32_t unit);
  void index_functions(Dwarf_Die& parent, int depth);
  const Function* function_at(uint64_t pc) const;
  std::string file_of_call(Dwarf_Die& call);

  std::vector<Dwarf_Die> units_;
  std::vector<Range> ranges_;
  uint32_t indexed_ = kNone;
  std::vector<Function> functions_;  // of unit `indexed_`
};

}  // namespace memscope
