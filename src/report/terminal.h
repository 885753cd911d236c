// A diagnosis for people: the verdict first, in ten seconds, in 80 columns.
//
//   MemScope  train.py  ·  300 steps  ·  cpu
//
//   LEAK  tensors pile up: +1.00 MiB per step, 1 block per step        98 % sure
//     allocated  train.py:41   leak = torch.randn(256, 1024)
//     kept by    train.py:42   leak_store.append(leak)
//     total      290 MiB in 290 blocks, since step 11   ▁▂▃▄▅▆▇█
//     do         Store a number instead of the tensor, or bound the list.
//
// Then what else was looked at, and how complete the input is. Text of the traced program (paths,
// statements) is made harmless before it is shown; colours only where the style has them.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/diagnosis.h"

namespace memscope {

struct TerminalStyle {
  size_t width = 80;
  bool colour = false;
  bool unicode = true;            // else ASCII only, but for the program's own text
  std::string working_directory;  // paths below it are shown relative to it
};

// For a stream: its width if it is a terminal (60 to 110), colours if it is one and neither
// NO_COLOR (no-color.org) nor TERM=dumb is set, ASCII if the locale names a character set that is
// not UTF-8.
TerminalStyle style_for(int fd);

std::string diagnosis_text(const Diagnosis& diagnosis, const TerminalStyle& style);

}  // namespace memscope
