#include "capture/settings.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "capture/agent_state.h"
#include "capture/recorder.h"
#include "core/where.h"
#include "trace/meta_text.h"

namespace memscope::capture {

Settings settings;

namespace settings_io {
namespace {

constexpr int64_t kLargestSample = int64_t{1} << 30;
constexpr int64_t kDefaultNativeFrames = 50;          // as msMemScope
constexpr int64_t kSmallestTrace = int64_t{1} << 20;  // the command and config() ask for more
constexpr size_t kSmallestSlab = size_t{1} << 20, kLargestSlab = size_t{1} << 30;

bool parse(std::string_view text, int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

uint64_t trace_bytes_of_environment;

// With K, M, G or T behind it, of 1024 each; "KiB" and "KB" are the same.
bool parse_size(std::string_view text, int64_t* bytes) {
  if (text.ends_with("B")) text.remove_suffix(text.ends_with("iB") ? 2 : 1);
  constexpr std::string_view kUnits = "KMGT";
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit == std::string_view::npos) return parse(text, bytes);
  const int shift = 10 * (static_cast<int>(unit) + 1);
  if (!parse(text.substr(0, text.size() - 1), bytes) || *bytes < 0 || *bytes > INT64_MAX >> shift) {
    return false;
  }
  *bytes <<= shift;
  return true;
}

const char* set_path(char (&path)[Settings::kPathMax], std::string_view value) {
  if (value.empty()) return "the path is empty";
  char directory[Settings::kPathMax] = {};
  if (value[0] != '/' && getcwd(directory, sizeof(directory)) == nullptr) {
    return "the current directory cannot be told";
  }
  const int length =
      std::snprintf(path, sizeof(path), "%s%s%.*s", directory, value[0] == '/' ? "" : "/",
                    static_cast<int>(value.size()), value.data());
  if (length < 0 || static_cast<size_t>(length) + 256 > sizeof(path)) return "the path is too long";
  return nullptr;
}

const char* set_run_id(std::string_view value) {
  if (value.empty() || value.size() >= sizeof(settings.run_id)) {
    return "a run id has 1 to 127 characters";
  }
  if (value.find('/') != std::string_view::npos || value[0] == '.') {
    return "a run id has no '/' and does not begin with '.'";
  }
  std::memcpy(settings.run_id, value.data(), value.size());
  settings.run_id[value.size()] = '\0';
  return nullptr;
}

// "auto", or a list of npu, npu:3, cuda, cpu, host, separated by commas. Recording is chosen by
// device type; the report filters by index.
const char* set_device(std::string_view value) {
  uint32_t mask = 0;
  bool host = false;
  while (!value.empty()) {
    const size_t comma = value.find(',');
    const std::string_view name = value.substr(0, comma);
    value = comma == std::string_view::npos ? std::string_view{} : value.substr(comma + 1);
    if (name == "auto") {
      mask = ~0u;
    } else if (const auto device = device_from_name(name)) {
      mask |= 1u << device->type;
    } else if (name == "host") {
      host = true;
    } else {
      return "device is auto, or a list of cpu, host, npu[:N], cuda[:N]";
    }
  }
  state.devices_off.store(~mask, std::memory_order_relaxed);
  settings.host = host;
  return nullptr;
}

// A list of c[:FRAMES] and python[:FRAMES], separated by commas. Python stacks are always whole:
// how many of their frames are shown is the report's matter.
const char* set_call_stack(std::string_view value) {
  uint32_t native = 0;
  while (!value.empty()) {
    const size_t comma = value.find(',');
    const std::string_view item = value.substr(0, comma);
    value = comma == std::string_view::npos ? std::string_view{} : value.substr(comma + 1);
    const size_t colon = item.find(':');
    const std::string_view kind = item.substr(0, colon);
    int64_t frames = kDefaultNativeFrames;
    const bool good = colon == std::string_view::npos || parse(item.substr(colon + 1), &frames);
    if (!good || frames < 0 || frames > static_cast<int64_t>(kMaxFrames) ||
        (kind != "c" && kind != "python")) {
      return "call_stack is a list of c[:0-1000] and python[:0-1000]";
    }
    if (kind == "c") native = static_cast<uint32_t>(frames);
  }
  settings.native_frames = native;
  return nullptr;
}

}  // namespace

const char* set(const char* key, const char* value) {
  const std::string_view name = key, text = value;
  int64_t number = 0;
  if (name == "output_path") return set_path(settings.output_path, text);
  if (name == "slab_dir") return set_path(settings.slab_dir, text);
  if (name == "run_id") return set_run_id(text);
  if (name == "device") return set_device(text);
  if (name == "call_stack") return set_call_stack(text);
  if (name == "host_sample") {
    if (!parse(text, &number) || number < 0 || number > kLargestSample) {
      return "host_sample is a number of bytes from 0 (every block) to 1 GiB";
    }
    settings.host_sample = static_cast<uint64_t>(number);
    return nullptr;
  }
  if (name == "rank") {
    if (!parse(text, &number) || number < 0) return "rank is a number from 0";
    settings.rank = number;
    return nullptr;
  }
  if (name == "slab_bytes") {
    if (!parse(text, &number) || number < static_cast<int64_t>(kSmallestSlab) ||
        number > static_cast<int64_t>(kLargestSlab)) {
      return "slab_bytes is 1 MiB to 1 GiB";
    }
    settings.slab_bytes = static_cast<size_t>(number);
    return nullptr;
  }
  if (name == "max_trace_size") {
    if (!parse_size(text, &number) || (number != 0 && number < kSmallestTrace)) {
      return "max_trace_size is bytes, with K, M, G or T after the number, 1M at least";
    }
    settings.max_trace_bytes =
        number != 0 ? static_cast<uint64_t>(number) : trace_bytes_of_environment;
    return nullptr;
  }
  if (name == "command") return set_path(settings.command, text);
  if (name == "source_bytes") {
    if (!parse(text, &number) || number < 0) return "source_bytes is a number from 0";
    settings.source_bytes = static_cast<size_t>(number);
    return nullptr;
  }
  return "no such setting";
}

bool from_environment() {
  set_path(settings.output_path, "memscopeDumpResults");
  if (const char* id = std::getenv("MSMEMSCOPE_RUN_ID")) set_run_id(id);
  if (const char* directory = std::getenv("MSMEMSCOPE_SLAB_DIR")) {
    set_path(settings.slab_dir, directory);
  }
  if (const char* source = std::getenv("MSMEMSCOPE_SOURCE"); source != nullptr && *source == '0') {
    settings.source_bytes = 0;
  }
  constexpr const char* kTraceSize = "MSMEMSCOPE_MAX_TRACE_SIZE";
  if (const char* size = std::getenv(kTraceSize)) {
    if (const char* why = set("max_trace_size", size)) notice(kTraceSize, why);
    trace_bytes_of_environment = settings.max_trace_bytes;
  }
  const char* config = std::getenv("MSMEMSCOPE_CONFIG");
  char text[Settings::kPathMax];
  if (config == nullptr || !text_member(config, "mode", text, sizeof(text)) ||
      (std::strcmp(text, "command") != 0 && std::strcmp(text, "exec") != 0)) {
    return false;
  }
  settings.has_launcher = std::strcmp(text, "command") == 0;
  if (const char* launcher = std::getenv("MSMEMSCOPE_LAUNCHER");
      launcher != nullptr && std::strlen(launcher) < sizeof(settings.launcher)) {
    std::strcpy(settings.launcher, launcher);
  }
  for (const char* key : {"output_path", "call_stack", "device", "host_sample", "slab_bytes",
                          "max_trace_size", "command"}) {
    if (text_member(config, key, text, sizeof(text)) && text[0] != '\0') set(key, text);
  }
  return true;
}

int64_t rank_from_environment() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    int64_t rank = -1;
    const char* value = std::getenv(name);
    if (value != nullptr && parse(value, &rank) && rank >= 0) return rank;
  }
  return -1;
}

}  // namespace settings_io
}  // namespace memscope::capture
