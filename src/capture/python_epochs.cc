#include "capture/python_epochs.h"

#include <dlfcn.h>

#include <cstring>

#include "capture/python_layout.h"

namespace memscope::capture::python_epochs {
namespace detail {
std::atomic<uint32_t> epochs[kEpochs];
std::atomic<bool> any_death{false};
}  // namespace detail

namespace {

using Dealloc = void (*)(PyObject*);

constexpr size_t kKnownBits = 65536;
constexpr size_t kWordBits = 64;
std::atomic<uint64_t> known_bits[kKnownBits / kWordBits];
std::atomic<uint64_t> watched{0};

std::atomic<Dealloc> original_dealloc{nullptr};
std::atomic<Dealloc>* dealloc_slot = nullptr;

size_t known_index(uint64_t code) {
  return ((code >> 4) ^ (code >> 20)) % kKnownBits;
}

void code_dealloc(PyObject* code) {
  const auto address = reinterpret_cast<uint64_t>(code);
  if (address == watched.load(std::memory_order_relaxed)) {
    watched.store(0, std::memory_order_relaxed);
  }
  note_death(address);
  original_dealloc.load(std::memory_order_relaxed)(code);
}

}  // namespace

void know(uint64_t code) noexcept {
  const size_t index = known_index(code);
  const uint64_t bit = uint64_t{1} << (index % kWordBits);
  std::atomic<uint64_t>& word = known_bits[index / kWordBits];
  if ((word.load(std::memory_order_relaxed) & bit) == 0) {
    word.fetch_or(bit, std::memory_order_relaxed);
  }
}

void watch(uint64_t code) noexcept {
  watched.store(code, std::memory_order_relaxed);
}
bool watched_died() noexcept {
  return watched.load(std::memory_order_relaxed) == 0;
}

void note_death(uint64_t code) noexcept {
  const size_t index = known_index(code);
  const uint64_t bit = uint64_t{1} << (index % kWordBits);
  if ((known_bits[index / kWordBits].load(std::memory_order_relaxed) & bit) == 0) return;
  detail::epochs[detail::epoch_index(code)].fetch_add(1, std::memory_order_relaxed);
  detail::any_death.store(true, std::memory_order_relaxed);
}

const char* wrap_dealloc(const PythonApi& api, int python_minor) {
  char* type = static_cast<char*>(api.PyCode_Type);
  const char* name;
  std::memcpy(&name, type + kTypeName, sizeof name);
  Dealloc dealloc;
  std::memcpy(&dealloc, type + kTypeDealloc, sizeof dealloc);
  if (dealloc == &code_dealloc) return nullptr;
  // A type with another header (Py_TRACE_REFS) has something else there. The name is a string of
  // the interpreter's own object, if it is one at all.
  Dl_info of_type, of_name, of_dealloc;
  if (dladdr(type, &of_type) == 0 || dladdr(name, &of_name) == 0 ||
      of_name.dli_fbase != of_type.dli_fbase || std::strcmp(name, "code") != 0) {
    return "PyCode_Type is not laid out as known";
  }
  // Py_tp_dealloc is 52 (Include/typeslots.h). Before 3.10 PyType_GetSlot refuses static types.
  constexpr int kSlotDealloc = 52;
  if (python_minor >= 10 && api.PyType_GetSlot != nullptr) {
    void* slot = api.PyType_GetSlot(type, kSlotDealloc);
    if (slot != reinterpret_cast<void*>(dealloc)) {
      return "PyCode_Type's tp_dealloc is not where it is known to be";
    }
  } else if (dladdr(reinterpret_cast<void*>(dealloc), &of_dealloc) == 0) {
    return "PyCode_Type's tp_dealloc is not a function";
  }
  original_dealloc.store(dealloc, std::memory_order_relaxed);
  static_assert(sizeof(std::atomic<Dealloc>) == sizeof(Dealloc));
  dealloc_slot = reinterpret_cast<std::atomic<Dealloc>*>(type + kTypeDealloc);
  dealloc_slot->store(&code_dealloc, std::memory_order_release);
  return nullptr;
}

void unwrap_dealloc() noexcept {
  if (dealloc_slot == nullptr) return;
  Dealloc ours = &code_dealloc;
  dealloc_slot->compare_exchange_strong(ours, original_dealloc.load(std::memory_order_relaxed));
}

}  // namespace memscope::capture::python_epochs
