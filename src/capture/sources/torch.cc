#include "capture/sources/torch.h"

#include <link.h>

#include <atomic>
#include <cstring>

#include "capture/recorder.h"

namespace memscope::capture::torch_source {

namespace {

// c10::Device, passed by value in the low 16 bits of one integer register on x86-64 and AArch64
// alike (torch: c10/core/Device.h).
struct C10Device {
  int8_t type;   // c10::DeviceType
  int8_t index;  // -1 for the CPU and for "the current one"
};

constexpr Where kCpuTensor{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
constexpr const char* kLibC10 = "libc10.so";

std::atomic<bool> cpu_off{false};  // a libc10 is loaded whose CPU allocator cannot be watched
std::atomic<bool> devices_noticed{false};

bool is_cpu(C10Device device) {
  return device.type == Device::kCpu;
}
bool cpu_on() {
  return !cpu_off.load(std::memory_order_relaxed);
}
// Types past what Where can hold do not exist in any torch so far.
bool can_record(C10Device device) {
  return device.type > 0 && device.type < 32;
}

Where pool_of(C10Device device) {
  const uint8_t index = device.index < 0 ? Device::kNoIndex : static_cast<uint8_t>(device.index);
  return {Layer::kPool, {static_cast<uint8_t>(device.type), index}};
}

// c10::ProfiledCPUMemoryReporter (c10/core/CPUAllocator.cpp). New is called after the allocation,
// Delete before the memory is freed, neither for empty tensors.
using NewFunction = void (*)(void* self, void* pointer, size_t bytes);
using DeleteFunction = void (*)(void* self, void* pointer);
using CpuOomFunction = void (*)(void* self, size_t bytes);
// c10::reportMemoryUsageToProfiler and reportOutOfMemoryToProfiler (c10/core/Allocator.cpp). The
// totals are int64_t up to torch 1.13 and size_t since: the same registers.
using ReportFunction = void (*)(void* pointer, int64_t bytes, size_t total_allocated,
                                size_t total_reserved, C10Device device);
using ReportOomFunction = void (*)(int64_t bytes, size_t total_allocated, size_t total_reserved,
                                   C10Device device);

void *original_new, *original_delete, *original_cpu_oom;
void *original_report_lll, *original_report_lmm, *original_oom_lll, *original_oom_lmm;

template <typename Function>
Function call_on(void*& original) {
  return reinterpret_cast<Function>(__atomic_load_n(&original, __ATOMIC_RELAXED));
}

void on_new(void* self, void* pointer, size_t bytes) {
  HookScope scope(MEMSCOPE_CALLER());
  call_on<NewFunction>(original_new)(self, pointer, bytes);
  if (cpu_on()) record_alloc(scope, kCpuTensor, pointer, bytes);
}

void on_delete(void* self, void* pointer) {
  HookScope scope;
  if (cpu_on()) record_free(scope, kCpuTensor, pointer);
  call_on<DeleteFunction>(original_delete)(self, pointer);
}

void on_cpu_oom(void* self, size_t bytes) {
  HookScope scope(MEMSCOPE_CALLER());
  call_on<CpuOomFunction>(original_cpu_oom)(self, bytes);
  record_oom(scope, kCpuTensor, bytes, 0, 0);
}

// A negative size is a free, reported before the memory can be handed out again: for a pool under
// the allocator's lock, for a mapping before it is unmapped.
void on_report(void*& original, void* pointer, int64_t bytes, size_t total_allocated,
               size_t total_reserved, C10Device device) {
  HookScope scope(MEMSCOPE_CALLER());
  const auto real = call_on<ReportFunction>(original);
  if (is_cpu(device)) {
    // Inside New and Delete, `scope` is not the outermost and these two do nothing. Where those are
    // not watched, a report may be theirs, without its other half: leave it.
    const bool mapping = cpu_on();
    if (mapping && bytes < 0) record_free(scope, kCpuTensor, pointer);
    real(pointer, bytes, total_allocated, total_reserved, device);
    if (mapping && bytes > 0) {
      record_alloc(scope, kCpuTensor, pointer, static_cast<uint64_t>(bytes));
    }
    return;
  }
  const bool record = can_record(device);
  if (record && bytes < 0) {
    record_pool_free(scope, pool_of(device), pointer, total_allocated, total_reserved);
  }
  real(pointer, bytes, total_allocated, total_reserved, device);
  if (record && bytes > 0) {
    record_pool_alloc(scope, pool_of(device), pointer, static_cast<uint64_t>(bytes),
                      total_allocated, total_reserved);
  }
}

void on_report_oom(void*& original, int64_t bytes, size_t total_allocated, size_t total_reserved,
                   C10Device device) {
  HookScope scope(MEMSCOPE_CALLER());
  call_on<ReportOomFunction>(original)(bytes, total_allocated, total_reserved, device);
  if (!is_cpu(device) && !can_record(device)) return;
  record_oom(scope, is_cpu(device) ? kCpuTensor : pool_of(device), static_cast<uint64_t>(bytes),
             total_allocated, total_reserved);
}

void on_report_lll(void* p, int64_t bytes, size_t allocated, size_t reserved, C10Device device) {
  on_report(original_report_lll, p, bytes, allocated, reserved, device);
}
void on_report_lmm(void* p, int64_t bytes, size_t allocated, size_t reserved, C10Device device) {
  on_report(original_report_lmm, p, bytes, allocated, reserved, device);
}
void on_oom_lll(int64_t bytes, size_t allocated, size_t reserved, C10Device device) {
  on_report_oom(original_oom_lll, bytes, allocated, reserved, device);
}
void on_oom_lmm(int64_t bytes, size_t allocated, size_t reserved, C10Device device) {
  on_report_oom(original_oom_lmm, bytes, allocated, reserved, device);
}

enum HookIndex { kNew, kDelete, kCpuOom, kReportLmm, kReportLll, kOomLmm, kOomLll };
// "lmm" is torch 2.0 and newer, "lll" 1.10 to 1.13. Written so that no code need run for it: the
// library's constructor, which comes before initialisers, patches a program that is linked with
// torch.
const SymbolHook kHooks[] = {
    {"_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", reinterpret_cast<void*>(&on_new), &original_new,
     kLibC10},
    {"_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", reinterpret_cast<void*>(&on_delete),
     &original_delete, kLibC10},
    {"_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm", reinterpret_cast<void*>(&on_cpu_oom),
     &original_cpu_oom, kLibC10},
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
     reinterpret_cast<void*>(&on_report_lmm), &original_report_lmm, kLibC10},
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
     reinterpret_cast<void*>(&on_report_lll), &original_report_lll, kLibC10},
    {"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", reinterpret_cast<void*>(&on_oom_lmm),
     &original_oom_lmm, kLibC10},
    {"_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE", reinterpret_cast<void*>(&on_oom_lll),
     &original_oom_lll, kLibC10},
};

bool watched(HookIndex index) {
  const HookState state = elf_patch::state(kHooks[index]);
  return state.found && state.slots > 0;
}

bool libc10_loaded() {
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void*) {
               const char* slash = strrchr(info->dlpi_name, '/');
               const char* file = slash == nullptr ? info->dlpi_name : slash + 1;
               return strncmp(file, kLibC10, strlen(kLibC10)) == 0 ? 1 : 0;
             },
             nullptr) != 0;
}

}  // namespace

std::span<const SymbolHook> hooks() {
  return kHooks;
}

Found found() noexcept {
  const bool cpu = watched(kNew) && watched(kDelete);
  const char* file = elf_patch::state(kHooks[kNew]).file;
  if (file[0] == '\0') file = elf_patch::state(kHooks[kReportLmm]).file;
  return {.libc10 = file,
          .loaded = libc10_loaded(),
          .cpu = cpu && cpu_on(),
          .devices = elf_patch::state(kHooks[kReportLmm]).found ||
                     elf_patch::state(kHooks[kReportLll]).found};
}

void changed() noexcept {
  if (!libc10_loaded()) return;
  const bool cpu = watched(kNew) && watched(kDelete);
  const bool was_off = cpu_off.exchange(!cpu);
  if (!cpu && !was_off) {
    notice("CPU tensors",
           elf_patch::counts().slots_refused > 0
               ? "switched off: the kernel does not let the slots of torch's libraries be written "
                 "(mprotect fails): look for a security policy that forbids it"
               : "switched off: this torch's libc10 does not call ProfiledCPUMemoryReporter::New "
                 "and Delete through slots that can be watched; please report its version");
  }
  const bool devices =
      elf_patch::state(kHooks[kReportLmm]).found || elf_patch::state(kHooks[kReportLll]).found;
  if (!devices && !devices_noticed.exchange(true)) {
    notice("device memory of torch",
           "switched off: this torch's libc10 has no reportMemoryUsageToProfiler of a known form; "
           "please report its version");
  }
}

}  // namespace memscope::capture::torch_source
