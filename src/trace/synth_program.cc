#include "trace/synth_program.h"

namespace memscope {

size_t SynthProgram::add_function(const std::string& name,
                                  const std::vector<std::string>& statements) {
  const size_t first = sites_.size();
  text_ += "def " + name + "():\n";
  ++lines_;
  for (const std::string& statement : statements) {
    text_ += "    " + statement + "\n";
    sites_.push_back({name, ++lines_, statement});
  }
  text_ += "\n";
  ++lines_;
  return first;
}

uint32_t SynthProgram::stack(LaneBuilder& lane, size_t site, uint32_t depth) const {
  std::vector<FrameSpec> frames;
  const Site& where = sites_[site];
  frames.push_back({kSynthFile, "<module>", 1});
  frames.push_back({kSynthFile, "main", 2});
  // Modules that call modules: the library's two functions in turn.
  while (frames.size() + 2 < depth) {
    const bool even = frames.size() % 2 == 0;
    frames.push_back({kSynthLibrary, even ? "Module._wrapped_call_impl" : "Module._call_impl",
                      even ? 1518u : 1527u});
  }
  frames.push_back({kSynthFile, where.function, where.line});
  if (depth > 3)
    frames.push_back({"/usr/lib/python3/dist-packages/torch/functional.py", "empty", 9});
  return lane.stack(frames);
}

}  // namespace memscope
