#include "analysis/inefficient.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "trace/records.h"

namespace memscope {
namespace {

constexpr uint64_t kStart = 0, kEnd = 1;           // LaunchRecord::action
constexpr uint64_t kAtenLevel = 0, kAtbLevel = 2;  // LaunchRecord::level

}  // namespace

std::string inefficiency_text(uint8_t types) {
  std::string text;
  for (const auto& [type, name] :
       {std::pair{Inefficiency::kEarlyAllocation, "early_allocation"},
        std::pair{Inefficiency::kLateDeallocation, "late_deallocation"},
        std::pair{Inefficiency::kTemporaryIdleness, "temporary_idleness"}}) {
    if ((types & type) == 0) continue;
    if (!text.empty()) text += ',';
    text += name;
  }
  return text;
}

InefficientFinder::Api* InefficientFinder::api_of(Layer layer) {
  if (layer == Layer::kPoolAtb) return &apis_[1];
  return layer == Layer::kPool ? &apis_[0] : nullptr;
}

// The call an event belongs to: its operator's, or one of its own.
uint64_t InefficientFinder::begin_call(Api& api) {
  return api.in_operator ? api.calls : ++api.calls;
}

void InefficientFinder::end_call(Api& api, Doing doing, uint64_t call) {
  if (api.in_operator) {
    api.operator_allocates = api.operator_allocates || doing == Doing::kMalloc;
    api.operator_frees = api.operator_frees || doing == Doing::kFree;
    return;
  }
  if (doing == Doing::kMalloc) api.latest_malloc = call;
  if (doing == Doing::kFree) api.latest_free = call;
}

void InefficientFinder::feed(const Event& event) {
  if (event.kind == EventKind::kRecord) {
    if (event.record_kind == static_cast<uint8_t>(Kind::kLaunch)) launch(event);
    if (event.record_kind == static_cast<uint8_t>(Kind::kAccess)) access(event);
    return;
  }
  if (event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) return;
  Api* api = api_of(event.where.layer);
  if (api == nullptr) return;
  const uint64_t call = begin_call(*api);
  const auto at = api->live.find(event.addr);
  if (event.kind == EventKind::kAlloc) {
    if (at != api->live.end()) settle(at->second);  // its free was not seen
    Block block;
    block.result = {event.addr, event.size, event.time, event.where, event.stack, 0};
    block.malloc_call = call;
    api->live[event.addr] = block;
    ++blocks_;
    end_call(*api, Doing::kMalloc, call);
    return;
  }
  if (at != api->live.end()) {
    Block& block = at->second;
    if (block.accessed && block.last_access < api->latest_malloc && api->latest_malloc < call) {
      block.result.types |= Inefficiency::kLateDeallocation;
    }
    settle(block);
    api->live.erase(at);
  }
  end_call(*api, Doing::kFree, call);
}

void InefficientFinder::launch(const Event& event) {
  const auto record = decode_record<LaunchRecord>(event.words);
  if (!record || (record->level != kAtenLevel && record->level != kAtbLevel)) return;
  Api& api = apis_[record->level == kAtbLevel ? 1 : 0];
  if (record->action == kStart) {
    ++api.calls;
    api.in_operator = true;
    api.operator_allocates = api.operator_frees = false;
  } else if (record->action == kEnd && api.in_operator) {
    api.in_operator = false;
    if (api.operator_allocates) api.latest_malloc = api.calls;
    if (api.operator_frees) api.latest_free = api.calls;
  }
}

void InefficientFinder::access(const Event& event) {
  const auto record = decode_record<AccessRecord>(event.words);
  if (!record) return;
  ++accesses_;
  // Where the input does not say whose memory it is, the address does.
  if (Api* api = api_of(event.where.layer)) {
    // One of a block that was there before is a call, too.
    if (!access_in(*api, record->addr)) begin_call(*api);
  } else if (!access_in(apis_[0], record->addr)) {
    access_in(apis_[1], record->addr);
  }
}

bool InefficientFinder::access_in(Api& api, uint64_t addr) {
  auto at = api.live.upper_bound(addr);
  if (at == api.live.begin()) return false;
  Block& block = (--at)->second;
  if (addr - block.result.addr >= std::max<uint64_t>(block.result.size, 1)) return false;
  const uint64_t call = begin_call(api);
  if (call != block.malloc_call && !block.first_use_seen) {
    block.first_use_seen = true;
    // M < L < F: something was freed in a call between the allocation and this first use.
    if (block.malloc_call < api.latest_free && api.latest_free < call) {
      block.result.types |= Inefficiency::kEarlyAllocation;
    }
  }
  if (block.accessed && call - block.last_access > options_.idle_threshold) {
    block.result.types |= Inefficiency::kTemporaryIdleness;
  }
  block.accessed = true;
  block.last_access = call;
  end_call(api, Doing::kAccess, call);
  return true;
}

void InefficientFinder::settle(Block& block) {
  block.result.types &= options_.types;
  if (block.result.types == 0 || block.result.size < options_.least_size) return;
  found_.push_back(block.result);
}

std::vector<InefficientBlock> InefficientFinder::finish() {
  for (Api& api : apis_) {
    for (auto& [addr, block] : api.live) settle(block);
    api.live.clear();
  }
  std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.time, a.addr, a.where) < std::tie(b.time, b.addr, b.where);
  });
  return std::move(found_);
}

}  // namespace memscope
