// The source of the pretend program of a synthetic trace: what its lines are and say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace_builder.h"

namespace memscope {

inline constexpr const char* kSynthFile = "/synthetic/train.py";
inline constexpr const char* kSynthLibrary =
    "/usr/lib/python3/dist-packages/torch/nn/modules/module.py";

class SynthProgram {
 public:
  // A place of the program that allocates.
  struct Site {
    std::string function;
    uint32_t line = 0;
    std::string text;
  };
  // Adds a function and returns the site of the first statement of its body; the following ones
  // lie in the lines below.
  size_t add_function(const std::string& name, const std::vector<std::string>& statements);

  const Site& site(size_t index) const { return sites_[index]; }
  size_t site_count() const { return sites_.size(); }
  const std::string& text() const { return text_; }

  // The site's stack in a lane, `depth` frames deep: module, main, frames of the library, the site,
  // and one frame of the library inside it.
  uint32_t stack(LaneBuilder& lane, size_t site, uint32_t depth) const;

 private:
  std::vector<Site> sites_;
  std::string text_ = "import torch\n\n";
  uint32_t lines_ = 2;
};

}  // namespace memscope
