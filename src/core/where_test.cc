#include "core/where.h"

#include <gtest/gtest.h>

namespace memscope {
namespace {

TEST(Where, PacksAndUnpacksEveryField) {
  const Where npu{Layer::kPool, {Device::kNpu, 31}};
  EXPECT_EQ(Where::unpack(npu.packed()), npu);
  const Where cpu{Layer::kTensor, {}};
  EXPECT_EQ(Where::unpack(cpu.packed()), cpu);
}

TEST(Layer, PoolsShareOneName) {
  for (const Layer layer : {Layer::kPool, Layer::kPoolMindSpore, Layer::kPoolAtb}) {
    EXPECT_EQ(layer_name(layer), "pool");
    EXPECT_TRUE(is_pool(layer));
    EXPECT_EQ(Where::unpack(Where{layer, {Device::kNpu, 3}}.packed()).layer, layer);
  }
  EXPECT_EQ(layer_from_name("pool"), Layer::kPool);
  EXPECT_EQ(layer_name(static_cast<Layer>(9)), "?");
}

TEST(Device, NamesRoundTrip) {
  for (const char* name : {"cpu", "cuda:0", "npu:31", "xpu:1", "device9:2"}) {
    const auto device = device_from_name(name);
    ASSERT_TRUE(device) << name;
    EXPECT_EQ(device_name(*device), name);
  }
  EXPECT_EQ(device_from_name("cuda"), (Device{Device::kCuda, 0}));
}

TEST(Device, RefusesWhatIsNoDevice) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:127", "npu:-1", "device32:0"}) {
    EXPECT_FALSE(device_from_name(name)) << name;
  }
}

}  // namespace
}  // namespace memscope
