#include "report/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/sample_diagnosis.h"
#include "report/text.h"

namespace memscope {
namespace {

using testing::HasSubstr;
using testing::Not;

TerminalStyle plain() {
  TerminalStyle style;
  style.working_directory = "/work/app";
  return style;
}

TEST(DiagnosisText, TellsTheLeakInTenSeconds) {
  EXPECT_EQ(diagnosis_text(sample_leak(), plain()),
            R"(MemScope  memory_leak_demo.py  ·  300 steps  ·  cpu

LEAK  tensors pile up: +1.00 MiB per step, 1 block per step            98 % sure
  allocated  examples/memory_leak_demo.py:41   leak = torch.randn(256, 1024)
  called at  train (memory_leak_demo.py:77)
  kept by    examples/memory_leak_demo.py:42   leak_store.append(leak)
  held in    __main__.leak_store[...]
  total      290 MiB in 290 blocks, since step 11   ▁▂▃▄▅▆▇█
  do         Store a number instead of the tensor, bound the list, or clear it
             at the end of a step.

Nothing else grows.

memory                            start       peak        end       per step
  cpu tensor                        0 B    345 MiB    312 MiB      +1.00 MiB

steps   300 from optimizer.step(), judged after step 10
trace   complete · memscopeDumpResults/run-1/host-x-7
)");
}

TEST(DiagnosisText, NoLeakIsAVerdictWithItsLimit) {
  const std::string text = diagnosis_text(sample_healthy(), plain());
  EXPECT_THAT(text,
              HasSubstr("OK  no leak: nothing grows by more than 2.10 KiB a step (290 steps)"));
  EXPECT_THAT(text, Not(HasSubstr("LEAK")));
  EXPECT_THAT(text, Not(HasSubstr("Nothing else")));
}

// What rests on samples says so, and how far off it may be.
TEST(DiagnosisText, SampledFiguresHaveTheirError) {
  Diagnosis d = sample_leak();
  Verdict& v = d.verdicts[0];
  v.cause = "host_leak";
  v.layer = d.layers[0].layer = "host";
  v.evidence["sampled_every_bytes"] = int64_t{524288};
  v.evidence["bytes_total_error"] = 25.0 * 1024 * 1024;
  v.evidence["bytes_per_step_error"] = 131072.0;
  d.layers[0].sampled_every = 524288;
  d.layers[0].peak_error = 30 << 20;
  d.layers[0].end_error = 28 << 20;
  const std::string text = diagnosis_text(d, plain());
  EXPECT_THAT(text, HasSubstr("total      290 MiB ± 25.0 MiB in about 290 blocks, since step 11"));
  EXPECT_THAT(text, HasSubstr("figures    sampled, every 512 KiB; ± 128 KiB per step"));
  EXPECT_THAT(text, HasSubstr("    sampled, every 512 KiB              ± 30.0 MiB ± 28.0 MiB"));
  TerminalStyle ascii = plain();
  ascii.unicode = false;
  EXPECT_THAT(diagnosis_text(d, ascii), HasSubstr("   +-30.0 MiB +-28.0 MiB"));
}

TEST(DiagnosisText, AShortRunIsNotCalledHealthy) {
  Diagnosis d = sample_healthy();
  d.verdicts[0].evidence = {{"steps", int64_t{3}}};
  const std::string text = diagnosis_text(d, plain());
  EXPECT_THAT(text, HasSubstr("UNKNOWN  too short a run"));
  EXPECT_THAT(text, Not(HasSubstr("OK  ")));
}

TEST(DiagnosisText, StaysWithinItsColumns) {
  Diagnosis d = sample_leak();
  Verdict& v = d.verdicts[0];
  v.site->file = "/somewhere/else/" + std::string(200, 'd') + "/train.py";
  v.site->text = "漏れ = torch.cat([" + std::string(300, 'x') + "])";
  v.sites.assign(5, v.sites[0]);
  v.advice = std::string(500, 'y');
  v.owner = "PTA@model@weight";
  d.suspects.assign(5, v);
  d.suppressed.assign(2, v);
  d.inputs.assign(3, d.inputs[0]);
  d.devices.assign(9, "cuda:0");
  d.gaps = {{.input = 0, .from_ns = 1, .to_ns = 2'000'000'000, .reason = std::string(100, 'g')}};
  d.dropped_events = 12;
  for (const size_t width : {size_t{60}, size_t{80}, size_t{110}}) {
    TerminalStyle style = plain();
    style.width = width;
    std::istringstream lines(diagnosis_text(d, style));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), std::max<size_t>(width, 80)) << line;
    }
  }
}

TEST(DiagnosisText, ColoursOnlyWhereAsked) {
  EXPECT_THAT(diagnosis_text(sample_leak(), plain()), Not(HasSubstr("\x1b")));
  TerminalStyle style = plain();
  style.colour = true;
  EXPECT_THAT(diagnosis_text(sample_leak(), style), HasSubstr("\x1b[1;31mLEAK\x1b[0m"));
}

TEST(DiagnosisText, AsciiWhereTheLocaleWantsIt) {
  TerminalStyle style = plain();
  style.unicode = false;
  for (const char c : diagnosis_text(sample_leak(), style)) {
    EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  }
}

TEST(DiagnosisText, TheProgramsTextCannotDriveTheTerminal) {
  Diagnosis d = sample_leak();
  d.verdicts[0].site->text = "x = '\x1b]0;owned\x07'";
  d.verdicts[0].site->file = "/tmp/\x1b[2J.py";
  d.inputs[0].process->argv0 = "\x1b[H";
  EXPECT_THAT(diagnosis_text(d, plain()), Not(HasSubstr("\x1b")));
}

TEST(DiagnosisText, AnEmptyDiagnosisIsShown) {
  EXPECT_THAT(diagnosis_text(Diagnosis{}, plain()), HasSubstr("no steps"));
}

}  // namespace
}  // namespace memscope
