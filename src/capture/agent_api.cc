#include "capture/agent_api.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "capture/agent.h"
#include "capture/agent_state.h"
#include "capture/agent_thread.h"
#include "capture/disk_budget.h"
#include "capture/elf_patch.h"
#include "capture/environment.h"
#include "capture/exec_hooks.h"
#include "capture/fixed_text.h"
#include "capture/inject.h"
#include "capture/lane0.h"
#include "capture/notices.h"
#include "capture/python_stack.h"
#include "capture/recorder.h"
#include "capture/run_directory.h"
#include "capture/settings.h"
#include "capture/siblings.h"
#include "capture/sources/torch.h"
#include "capture/trace_file.h"

namespace memscope::capture {
namespace {

// The functions of the table open a HookScope: what they allocate is the agent's, and a signal
// handler that allocates meanwhile finds no lock of ours held by its own thread.

// Not thread-local: the agent has one thread-local pointer and no more.
char error_line[256];
const msmemscope_agent_v1* other_copy = nullptr;  // it was first: its table is ours too

int result(const char* why) {
  if (why != nullptr) std::snprintf(error_line, sizeof(error_line), "%s", why);
  return why == nullptr ? 0 : -1;
}

int configure(const char* key, const char* value) {
  if (key == nullptr || value == nullptr) return result("a setting needs a key and a value");
  const char* why = settings_io::set(key, value);
  if (why == nullptr) return 0;
  std::snprintf(error_line, sizeof(error_line), "%s = '%s': %s", key, value, why);
  return -1;
}

int install() {
  const HookScope own;
  return result(agent::install());
}
int refresh() {
  elf_patch::refresh();
  return result(nullptr);
}
int start() {
  const HookScope own;
  return result(agent::start());
}
int stop() {
  const HookScope own;
  return result(agent::stop());
}
int stop_at_exit() {
  const HookScope own;
  return result(agent::stop_at_exit());
}
int shutdown() {
  const HookScope own;
  return result(agent::shutdown());
}
int exiting() {
  const HookScope own;
  return result(agent::exiting());
}

// Through the calling thread's lane where it can be, so that the record stands among the thread's
// events; else through lane 0.
template <typename Record>
int write_record(const Record& record) {
  agent_thread::start_if_wanted();
  HookScope scope;
  Lane* lane = scope.lane();
  if (lane != nullptr && scope.outermost() && state.recording.load() != 0) {
    lane->busy.store(1, std::memory_order_seq_cst);
    const bool written = state.recording.load() != 0 && write_cold(*lane, record);
    lane->busy.store(0, std::memory_order_release);
    if (written) return result(nullptr);
  }
  pthread_mutex_lock(&state.trace_lock);
  const bool open = trace_file::is_open();
  if (open && state.recording.load() != 0 && !disk_budget::may_write()) {
    __atomic_fetch_add(&state.unplaced_drops, 1, __ATOMIC_RELAXED);
  } else if (open) {
    write_lane0(record);
    flush_lane0();
  }
  pthread_mutex_unlock(&state.trace_lock);
  return result(open ? nullptr : "there is no trace yet: nothing was recorded");
}

int step(uint32_t source, uint64_t index, uint64_t optimizer, const char* name) {
  if (state.recording.load(std::memory_order_relaxed) == 0) return result(nullptr);
  return write_record(StepRecord{.source = source,
                                 .index = index,
                                 .optimizer = optimizer,
                                 .name = name != nullptr ? name : ""});
}

struct RecordArguments {
  const uint64_t* numbers;
  size_t number_count;
  const char* const* strings;
  const size_t* lengths;
  size_t string_count;
};

template <typename Record>
int record_as(const RecordArguments& given) {
  Record record;
  size_t numbers = 0, strings = 0;
  for_each_field(record, [&](std::string_view, auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string_view>) {
      if (strings < given.string_count) value = {given.strings[strings], given.lengths[strings]};
      ++strings;
    } else {
      if (numbers < given.number_count) value = std::bit_cast<Value>(given.numbers[numbers]);
      ++numbers;
    }
  });
  if (numbers != given.number_count || strings != given.string_count) {
    return result("the numbers and strings do not fit the record kind");
  }
  return write_record(record);
}

int record(uint32_t kind, const uint64_t* numbers, size_t number_count, const char* const* strings,
           const size_t* lengths, size_t string_count) {
  const RecordArguments given{numbers, number_count, strings, lengths, string_count};
  int outcome = -2;
  visit_record_kinds([&]<typename Record>(std::string_view) {
    if constexpr (!is_hot<Record>) {
      if (static_cast<uint32_t>(Record::kKind) == kind) outcome = record_as<Record>(given);
    }
  });
  return outcome == -2 ? result("no such cold record kind") : outcome;
}

int python_stacks_on() {
  const HookScope own;
  const char* why = python_stack::check();
  if (why != nullptr) notice("Python stacks are off", why);
  return result(why);
}

int preexisting(uint64_t addr, uint64_t size, uint32_t where) {
  if (addr != 0 && size != 0 && !state.shadow.contains(addr)) {
    state.shadow.insert(addr, pack_sized(size, static_cast<uint16_t>(where)), 0);
  }
  return result(nullptr);
}

size_t status(char* out, size_t size) {
  const HookScope own;
  FixedText json(out, size);
  uint64_t events[16] = {}, dropped = state.unplaced_drops, lanes = 0;
  for (const Lane& lane : state.lanes) {
    for (size_t i = 0; i < 16; ++i) events[i] += lane.events[i].load(std::memory_order_relaxed);
    dropped += lane.dropped.load(std::memory_order_relaxed);
    lanes += lane.tid.load(std::memory_order_relaxed) != 0 ? 1 : 0;
  }
  const PatchCounts patches = elf_patch::counts();
  const torch_source::Found torch = torch_source::found();
  pthread_mutex_lock(&state.trace_lock);
  json.add("{\"version\":").add_json(MEMSCOPE_VERSION);
  json.add(",\"directory\":").add_json(trace_file::directory());
  json.add(",\"run_id\":").add_json(run_directory::id());
  json.add(",\"output_path\":").add_json(settings.output_path);
  pthread_mutex_unlock(&state.trace_lock);
  json.add(",\"recording\":%s", state.recording.load() != 0 ? "true" : "false");
  json.add(",\"finished\":%s", state.finished.load() != 0 ? "true" : "false");
  json.add(",\"python_stacks\":%s", python_stack::on() ? "true" : "false");
  json.add(",\"slots_patched\":%zu,\"slots_restored\":%zu,\"slots_left\":%zu",
           patches.slots_patched, patches.slots_restored, patches.slots_left);
  json.add(",\"torch\":{\"libc10\":").add_json(torch.libc10);
  json.add(",\"loaded\":%s,\"cpu\":%s,\"devices\":%s}", torch.loaded ? "true" : "false",
           torch.cpu ? "true" : "false", torch.devices ? "true" : "false");
  json.add(",\"live_blocks\":%zu,\"shadow_lost\":%llu,\"lanes\":%llu,\"dropped\":%llu",
           state.shadow.count() + state.host.count() + state.mappings.count(),
           static_cast<unsigned long long>(state.shadow.lost()) +
               static_cast<unsigned long long>(state.host.lost()),
           static_cast<unsigned long long>(lanes), static_cast<unsigned long long>(dropped));
  json.add(",\"events\":{\"alloc\":%llu,\"free\":%llu,\"pool_alloc\":%llu,\"pool_free\":%llu}}",
           static_cast<unsigned long long>(events[1]), static_cast<unsigned long long>(events[2]),
           static_cast<unsigned long long>(events[3]), static_cast<unsigned long long>(events[4]));
  return json.length();
}

void fork_before() {
  const HookScope own;
  agent::fork_before();
}
void fork_after_parent() {
  const HookScope own;
  agent::fork_after_parent();
}

const char* agent_version() {
  return MEMSCOPE_VERSION;
}
const char* last_error() {
  return error_line;
}

constexpr msmemscope_agent_v1 kTable = {
    .version = 1,
    .size = sizeof(msmemscope_agent_v1),
    .agent_version = agent_version,
    .last_error = last_error,
    .configure = configure,
    .install = install,
    .refresh = refresh,
    .start = start,
    .stop = stop,
    .shutdown = shutdown,
    .exiting = exiting,
    .step = step,
    .record = record,
    .python_stacks_on = python_stacks_on,
    .python_finalizing = python_stack::finalizing,
    .python_stack_text = python_stack::text,
    .fork_before = fork_before,
    .fork_after_parent = fork_after_parent,
    .fork_after_child = agent::fork_after_child,
    .preexisting = preexisting,
    .status = status,
    .stop_at_exit = stop_at_exit,
};

// A copy of this library that was loaded before us, if any.
const msmemscope_agent_v1* find_other_copy() {
  struct Search {
    const void* own;
    char path[kPathMax];
  };
  Dl_info self{};
  dladdr(reinterpret_cast<const void*>(&kTable), &self);
  static Search search;
  search.own = self.dli_fbase;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto* found = static_cast<Search*>(data);
        const char* name = object->dlpi_name;
        if (name == nullptr || std::strstr(name, "libmsmemscope_agent") == nullptr ||
            reinterpret_cast<const void*>(object->dlpi_addr) == found->own) {
          return 0;
        }
        std::snprintf(found->path, sizeof(found->path), "%s", name);
        return 1;
      },
      &search);
  if (search.path[0] == '\0') return nullptr;
  void* handle = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  using GetTable = const msmemscope_agent_v1* (*)();
  auto* get = reinterpret_cast<GetTable>(dlsym(handle, "msmemscope_agent"));
  dlclose(handle);
  return get != nullptr ? get() : nullptr;
}

bool disabled() {
  const char* value = std::getenv("MSMEMSCOPE_DISABLE");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

__attribute__((constructor)) void on_load() {
  if (disabled()) return;
  other_copy = find_other_copy();
  if (other_copy != nullptr) return;
  clock_init();
  for (ShadowMap* map : {&state.shadow, &state.host, &state.mappings}) map->set_origin(ticks_now());
  if (!settings_io::from_environment()) return;  // API mode: Python tells us what to do
  environment::remember();
  if (environment::followed()) elf_patch::add(exec_hooks::hooks());
  {
    const HookScope own;
    if (const char* why = agent::start()) notices::say(why);
  }
  inject::on_load();
}

// A program without Python ends through exit(): its trace is closed there. Where nothing calls this
// (a signal, _exit), the slab stays and is read instead.
__attribute__((destructor)) void on_unload() {
  if (other_copy != nullptr || state.fork_page == nullptr || state.fork_page->alive.load() == 0) {
    return;
  }
  const HookScope own;
  if (trace_file::is_open() && state.finished.load() == 0) agent::exiting();
  siblings::sweep_last();
}

}  // namespace
}  // namespace memscope::capture

extern "C" const msmemscope_agent_v1* msmemscope_agent(void) {
  using memscope::capture::other_copy;
  return other_copy != nullptr ? other_copy : &memscope::capture::kTable;
}
