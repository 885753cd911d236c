#include "report/compat.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace memscope {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;

std::string_view pool_name(Layer layer) {
  switch (layer) {
    case Layer::kPool:
      return "Pytorch Caching memory pool";
    case Layer::kPoolAtb:
      return "ATB memory pool";
    case Layer::kPoolMindSpore:
      return "Mindspore memory pool";
    case Layer::kTensor:
      return "Pytorch CPU memory";  // the original did not watch it
    case Layer::kWorkspace:
      return "Workspace memory pool";
    case Layer::kPinned:
      return "Pinned memory";
    case Layer::kHost:
      return "Host memory";
    default:
      return "Hal memory";
  }
}

// "0" for npu:0 and cuda:0, "cpu" for the CPU.
std::string device_id(Device device) {
  return device.type == Device::kCpu ? "cpu" : std::to_string(device.index);
}

void add_leaks(std::span<const PoolReport* const> pools, size_t max_blocks, std::string& out) {
  int64_t bytes = 0;
  int64_t blocks = 0;
  std::vector<std::pair<uint32_t, std::string>> lines;  // by step
  for (const PoolReport* pool : pools) {
    bytes += pool->leaked_bytes;
    blocks += pool->leaked_blocks;
    for (const LeakedBlock& block : pool->leaked) {
      lines.emplace_back(
          block.step,
          fmt::format("Direct {} leak of {:f} Mb(s) at 0x{:x} in kernel_0 at step {}.\n",
                      pool_name(pool->where.layer), static_cast<double>(block.size) / kMegabyte,
                      block.addr, block.step));
    }
  }
  if (blocks == 0) return;
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  out += fmt::format("====== ERROR: Detected memory leaks on device {} ======\n",
                     device_id(pools.front()->where.device));
  if (lines.size() > max_blocks) lines.resize(max_blocks);
  for (const auto& [step, line] : lines) out += line;
  if (static_cast<int64_t>(lines.size()) < blocks) {
    out += fmt::format("({} more allocation(s) are in the summary only)\n",
                       blocks - static_cast<int64_t>(lines.size()));
  }
  out += fmt::format("====== SUMMARY: {:f} Mb(s) leaked in {} allocation(s) ======\n",
                     static_cast<double>(bytes) / kMegabyte, blocks);
}

void add_gaps(const PoolReport& pool, std::string& out) {
  out += fmt::format("======= {} Gap Analysis of Device {} =======\n", pool_name(pool.where.layer),
                     device_id(pool.where.device));
  out += fmt::format("\t{:<25}{:<25}{}\n", "MinAlloc/MaxAlloc(%)", "MinAllocMem(MB)", "StepId");
  for (const auto& [name, gap] :
       {std::pair{"MinGap", pool.min_gap}, std::pair{"MaxGap", pool.max_gap}}) {
    out += fmt::format("{}\t{:<25.4f}{:<25.4f}{}\n", name, gap.ratio * 100,
                       static_cast<double>(gap.min_allocated) / kMegabyte, gap.step);
  }
}

bool has_gap_analysis(const PoolReport& pool) {
  return is_pool(pool.where.layer) || pool.where.layer == Layer::kTensor ||
         pool.where.layer == Layer::kWorkspace;
}

}  // namespace

std::string compat_report(std::span<const PoolReport> pools, size_t max_blocks) {
  // One report a process and device, its pools together.
  std::vector<const PoolReport*> sorted;
  for (const PoolReport& pool : pools) sorted.push_back(&pool);
  const auto key = [](const PoolReport* pool) {
    return std::pair(pool->input, pool->where.device);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const PoolReport* a, const PoolReport* b) { return key(a) < key(b); });
  std::string out;
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto last = std::find_if(
        first, sorted.end(), [&](const PoolReport* pool) { return key(pool) != key(*first); });
    add_leaks({first, last}, max_blocks, out);
    for (auto pool = first; pool != last; ++pool) {
      if (has_gap_analysis(**pool)) add_gaps(**pool, out);
    }
    first = last;
  }
  return out;
}

}  // namespace memscope
