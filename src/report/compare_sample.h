// A comparison made by hand for this room's tests: a leak of 290 MiB beside what stays.
#pragma once

#include "analysis/compare.h"

namespace memscope {

inline SiteFrame compared_line(int64_t line, std::string text) {
  return {.file = "/work/app/train.py",
          .line = line,
          .end_line = line,
          .function = "train",
          .user = true,
          .text = std::move(text)};
}

// BASE at step 10 holds 20 MiB, NEW at step 300 holds 325 MiB: 305 MiB more, of which 290 leak.
inline Comparison sample_comparison() {
  constexpr int64_t kMiB = 1 << 20;
  const auto row = [](std::optional<SiteFrame> site, std::optional<Held> base,
                      std::optional<Held> now) {
    ComparedRow result{.site = std::move(site), .device = "cpu", .layer = "tensor"};
    result.change = {base, now};
    return result;
  };
  Comparison c;
  c.tool = "msmemscope 0.1.0";
  for (ComparedSide* side : {&c.base, &c.now}) {
    side->name = "memscopeDumpResults";
    side->inputs = {{.path = "/work/app/memscopeDumpResults/run-1/host-x-7", .ended = "exit"}};
    side->steps_source = "optimizer";
    side->steps = 300;
  }
  c.base.at_step = 10;
  c.now.at_step = 300;
  c.total = {Held{20 * kMiB, 12}, Held{325 * kMiB, 310}};
  c.layers = {{.device = "cpu",
               .layer = "tensor",
               .change = c.total,
               .base_peak = 40 * kMiB,
               .now_peak = 345 * kMiB}};
  c.sites.rows = {
      row(compared_line(41, "leak = torch.randn(256, 1024)"), std::nullopt, Held{290 * kMiB, 290}),
      row(compared_line(60, "cache[key] = value"), Held{kMiB, 1}, Held{17 * kMiB, 9}),
      row(compared_line(12, "model = Net()"), Held{18 * kMiB, 10}, Held{18 * kMiB, 11}),
      row(std::nullopt, Held{kMiB, 1}, std::nullopt)};
  return c;
}

}  // namespace memscope
