#include "analysis/site.h"

#include <gtest/gtest.h>

namespace memscope {
namespace {

TEST(Places, TheUsersAndOthers) {
  EXPECT_EQ(place_of("/home/me/train.py"), Place::kUser);
  EXPECT_EQ(place_of("/home/me/msmemscope/examples/demo.py"), Place::kUser);
  EXPECT_EQ(place_of("/home/me/torch/models/net.py"), Place::kUser) << "an editable install";
  EXPECT_EQ(place_of("<stdin>"), Place::kUser);
  EXPECT_EQ(place_of("<ipython-input-3-5fd0>"), Place::kUser);
  EXPECT_EQ(place_of("/tmp/ipykernel_4711/123.py"), Place::kUser);
  EXPECT_EQ(place_of("/usr/lib/python3.11/threading.py"), Place::kStandard);
  EXPECT_EQ(place_of("/opt/uv/cpython-3.13.1/lib/python3.13t/json/decoder.py"), Place::kStandard);
  EXPECT_EQ(place_of("<frozen runpy>"), Place::kStandard);
  EXPECT_EQ(place_of("/usr/lib/python3/dist-packages/torch/nn/modules/linear.py"),
            Place::kFramework);
  EXPECT_EQ(place_of("/usr/lib/python3/dist-packages/requests/api.py"), Place::kLibrary);
  EXPECT_EQ(place_of("/home/me/.venv/lib/python3.11/site-packages/transformers/trainer.py"),
            Place::kLibrary);
  EXPECT_EQ(place_of("/home/me/.venv/lib/python3.11/site-packages/msmemscope/api.py"),
            Place::kTool);
  EXPECT_EQ(place_of("/src/memscope/python/msmemscope/api.py"), Place::kTool);
  EXPECT_EQ(place_of("/tmp/torchinductor_me/ab/cab.py"), Place::kFramework);
  EXPECT_EQ(place_of("<eval_with_key>.7"), Place::kFramework);
  EXPECT_EQ(place_of("/home/me/python3/train.py"), Place::kUser) << "not below lib";
}

TEST(Places, OfObjectFiles) {
  EXPECT_EQ(place_of_object("/home/me/ext.cpython-311-x86_64-linux-gnu.so"), Place::kUser);
  EXPECT_EQ(place_of_object("/home/me/proj/lib/libmine.so"), Place::kUser);
  EXPECT_EQ(place_of_object("/root/.cache/torch_extensions/py311_cpu/my/my.so"), Place::kUser);
  EXPECT_EQ(place_of_object("/opt/ml/code/server"), Place::kUser);
  EXPECT_EQ(place_of_object("/usr/lib/x86_64-linux-gnu/libpng16.so.16"), Place::kLibrary);
  EXPECT_EQ(place_of_object("/v/lib/python3.11/site-packages/orjson/orjson.abi3.so"),
            Place::kLibrary);
  EXPECT_EQ(place_of_object("/home/me/miniconda3/envs/a/lib/libhdf5.so"), Place::kLibrary);
  EXPECT_EQ(place_of_object("/v/lib/python3.11/site-packages/numpy.libs/libfortran-1.so"),
            Place::kFramework);
  EXPECT_EQ(place_of_object("/v/lib/python3.11/site-packages/numpy/core/_multiarray.so"),
            Place::kFramework);
  EXPECT_EQ(place_of_object("/home/me/pytorch/torch/lib/libtorch_cpu.so"), Place::kFramework);
  EXPECT_EQ(place_of_object("/usr/lib/x86_64-linux-gnu/libc.so.6"), Place::kStandard);
  EXPECT_EQ(place_of_object("/home/me/miniconda3/lib/libstdc++.so.6.0.29"), Place::kStandard);
  EXPECT_EQ(place_of_object("/home/me/.pyenv/versions/3.12.1/bin/python3.12"), Place::kStandard);
  EXPECT_EQ(place_of_object("/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64.so"),
            Place::kStandard);
  EXPECT_EQ(place_of_object("/home/me/lib/libjemalloc.so.2"), Place::kStandard);
  EXPECT_EQ(place_of_object("[vdso]"), Place::kStandard);
  EXPECT_EQ(place_of_object("?"), Place::kStandard);
  EXPECT_EQ(place_of_object("/home/me/memscope/build/libmsmemscope_agent.so"), Place::kTool);
}

TEST(Places, OfSourceFilesInTheUsersObject) {
  EXPECT_EQ(place_of_source("/home/me/ext.cc"), Place::kUser);
  EXPECT_EQ(place_of_source("ext.cc"), Place::kUser);
  EXPECT_EQ(place_of_source("/usr/src/app/ext.cc"), Place::kUser);
  EXPECT_NE(place_of_source("/usr/include/c++/12/bits/new_allocator.h"), Place::kUser);
  EXPECT_NE(place_of_source("/home/me/miniconda3/x86_64/include/c++/11/vector"), Place::kUser);
  EXPECT_NE(place_of_source("/v/lib/python3.11/site-packages/torch/include/c10/util/x.h"),
            Place::kUser);
  EXPECT_NE(place_of_source("/home/me/pybind11/include/pybind11/pybind11.h"), Place::kUser);
}

struct Stacks {
  StackTable stacks;
  StringTable strings;
  Sites::Sources sources;

  // Outermost first: (file, function, line).
  struct Call {
    const char *file, *function;
    uint32_t line;
    FrameKind kind = FrameKind::kPython;
  };
  StackId stack(std::initializer_list<Call> calls) {
    StackId id;
    for (const Call& call : calls) {
      id = stacks.intern(id, stacks.intern_frame({.file = strings.intern(call.file),
                                                  .function = strings.intern(call.function),
                                                  .line = call.line,
                                                  .kind = call.kind}));
    }
    return id;
  }
};

constexpr const char* kLinear = "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py";
constexpr const char* kTrainer = "/v/lib/python3.11/site-packages/transformers/trainer.py";

TEST(Sites, TheInnermostUserFrame) {
  Stacks s;
  const StackId stack = s.stack(
      {{"/me/train.py", "<module>", 50}, {"/me/train.py", "step", 20}, {kLinear, "forward", 114}});
  Sites sites(s.stacks, s.strings, s.sources);
  const SiteFrame& frame = sites.frame(sites.site_of(stack));
  EXPECT_EQ(frame.file, "/me/train.py");
  EXPECT_EQ(frame.line, 20);
  EXPECT_EQ(frame.function, "step");
  EXPECT_TRUE(frame.user);
  EXPECT_FALSE(frame.text);
}

TEST(Sites, WithoutAUserFrameALibrarysThenAnyPython) {
  Stacks s;
  const StackId library = s.stack({{"/usr/lib/python3.11/threading.py", "run", 1},
                                   {kTrainer, "train", 7},
                                   {kLinear, "forward", 114}});
  const StackId framework =
      s.stack({{"/usr/lib/python3.11/threading.py", "run", 1}, {kLinear, "forward", 114}});
  const StackId nothing = s.stack({{"?", "?", 0, FrameKind::kNative}});
  Sites sites(s.stacks, s.strings, s.sources);
  EXPECT_EQ(sites.frame(sites.site_of(library)).function, "train");
  EXPECT_FALSE(sites.frame(sites.site_of(library)).user);
  EXPECT_EQ(sites.frame(sites.site_of(framework)).function, "forward");
  EXPECT_EQ(sites.site_of(nothing), 0u);
  EXPECT_EQ(sites.site_of({}), 0u);
}

TEST(Sites, FramesOfOneStatementAreOneSite) {
  Stacks s;
  s.sources["/me/train.py"] = {"x = f(\n    a,\n    b)\n", 0};
  const StackId first = s.stack({{"/me/train.py", "step", 1}});
  const StackId third = s.stack({{"/me/train.py", "step", 3}});
  Sites sites(s.stacks, s.strings, s.sources);
  EXPECT_EQ(sites.site_of(first), sites.site_of(third));
  const SiteFrame& frame = sites.frame(sites.site_of(first));
  EXPECT_EQ(frame.line, 1);
  EXPECT_EQ(frame.end_line, 3);
  EXPECT_EQ(frame.text, "x = f(a, b)");
}

TEST(Sites, ASourceNewerThanTheProcessIsInferred) {
  Stacks s;
  s.sources["/me/train.py"] = {"x = 1\n", SourceText::kNewer};
  const StackId stack = s.stack({{"/me/train.py", "step", 1}});
  Sites sites(s.stacks, s.strings, s.sources);
  EXPECT_TRUE(sites.frame(sites.site_of(stack)).inferred);
}

}  // namespace
}  // namespace memscope
