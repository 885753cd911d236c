// A library that allocates in its constructor, when asked to, and frees in its destructor.
#include <cstdlib>
#include <vector>

namespace {

struct Held {
  std::vector<char*> blocks;
  Held() {
    for (size_t i = 0; i < 100; ++i) {
      blocks.push_back(static_cast<char*>(std::malloc(100 + i)));
      *blocks.back() = static_cast<char>(i);
    }
  }
  ~Held() {
    for (char* block : blocks) std::free(block);
  }
} held;

}  // namespace

extern "C" __attribute__((visibility("default"))) size_t host_plugin_work() {
  const std::vector<size_t> numbers(held.blocks.size(), 77);
  size_t sum = 0;
  for (const size_t number : numbers) sum += number;
  return sum;
}
