// Diagnoses made by hand for this room's tests: the demo's leak, and a healthy run.
#pragma once

#include "analysis/diagnosis.h"

namespace memscope {

inline SiteFrame sample_frame(int64_t line, std::string function, std::string text) {
  return {.file = "/work/app/examples/memory_leak_demo.py",
          .line = line,
          .end_line = line,
          .function = std::move(function),
          .module = "__main__",
          .user = true,
          .text = std::move(text)};
}

// 300 steps, warm-up until step 10; one 1 MiB tensor a step goes into a module-level list.
inline Diagnosis sample_leak() {
  Verdict leak;
  leak.id = "3f9a1c20";
  leak.cause = "leak";
  leak.layer = "tensor";
  leak.device = "cpu";
  leak.processes = {0};
  leak.confidence = 0.985;
  leak.bytes_total = int64_t{290} << 20;
  leak.bytes_per_step = 1 << 20;
  leak.blocks = 290;
  leak.first_step = 11;
  leak.last_step = 300;
  leak.site = sample_frame(41, "create_memory_leak", "leak = torch.randn(256, 1024)");
  leak.kept_at = sample_frame(42, "create_memory_leak", "leak_store.append(leak)");
  leak.sites = {{.site = *leak.site, .bytes = leak.bytes_total, .blocks = 290}};
  leak.stack = {*leak.site, sample_frame(77, "train", "create_memory_leak()")};
  leak.holders = {{.root = "module",
                   .path = {{.kind = "global", .name = "leak_store", .type = "list", .len = 300},
                            {.kind = "item", .name = "[11]", .type = "Tensor"}},
                   .blocks = 290,
                   .bytes = leak.bytes_total,
                   .text = "__main__.leak_store[...]"}};
  leak.evidence = {{"curve", std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}},
                   {"blocks_per_step", 1.0},
                   {"merged", false},
                   {"steps", int64_t{290}},
                   {"method", std::string("Theil-Sen")}};
  leak.advice =
      "Store a number instead of the tensor, bound the list, or clear it at the end of a step.";

  Diagnosis d;
  d.tool = "msmemscope 0.1.0";
  d.inputs = {
      {.path = "/work/app/memscopeDumpResults/run-1/host-x-7",
       .process = InputSummary::Process{.host = "host", .pid = 7, .argv0 = "memory_leak_demo.py"},
       .ended = "exit",
       .agent = "0.1.0"}};
  d.devices = {"cpu"};
  d.steps = {.source = "optimizer", .count = 300, .first = 1, .last = 300, .warmup_until = 10};
  d.layers = {{.input = 0,
               .device = "cpu",
               .layer = "tensor",
               .allocated = {.start = 0, .peak = int64_t{345} << 20, .end = int64_t{312} << 20},
               .bytes_per_step = 1 << 20}};
  d.verdicts = {leak};
  return d;
}

inline Diagnosis sample_healthy() {
  Diagnosis d = sample_leak();
  Verdict none;
  none.id = "none";
  none.cause = "none";
  none.processes = {0};
  none.confidence = 0.97;
  none.evidence = {{"detection_limit_bytes_per_step", 2150.4}, {"steps", int64_t{290}}};
  none.advice = "";
  d.verdicts = {none};
  d.layers[0].bytes_per_step = 0;
  return d;
}

}  // namespace memscope
