#include "symbols/look_up.h"

#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "symbols/dwarf_units.h"
#include "symbols/find_object.h"
#include "symbols/function_table.h"

namespace memscope {
namespace {

// What libdw's call-back needs to hand out the debug file that was found before.
struct Session {
  const SymbolOptions* options = nullptr;
  FoundObject files;
};

// libdwfl asks once for the debug file, then, without a file name, for the one it links to
// (elfutils 0.188, libdwfl/dwfl_module_getdwarf.c).
int hand_out_debug_file(Dwfl_Module* /*module*/, void** user_data, const char* /*name*/,
                        Dwarf_Addr /*base*/, const char* file_name, const char* /*link*/,
                        GElf_Word /*crc*/, char** out_name) {
  auto* session = static_cast<Session*>(*user_data);
  if (session == nullptr) return -1;
  FoundObject& files = session->files;
  if (file_name != nullptr) {
    if (!files.debug) return -1;
    *out_name = ::strdup(files.debug_path.c_str());
    return files.debug.release();
  }
  const std::string& linking = files.debug_path.empty() ? files.main_path : files.debug_path;
  const FileHandle file = open_regular(linking);
  const auto identity = file ? identify_elf(file.get()) : std::nullopt;
  if (!identity) return -1;
  std::string path;
  FileHandle alt = find_alt_file(linking, *identity, *session->options, path);
  if (alt) *out_name = ::strdup(path.c_str());
  return alt.release();
}

const Dwfl_Callbacks kCallbacks = {.find_elf = nullptr,
                                   .find_debuginfo = hand_out_debug_file,
                                   .section_address = dwfl_offline_section_address,
                                   .debuginfo_path = nullptr};

// "name@@VERSION" of .dynsym without its version.
std::string plain_name(const char* name) {
  if (name == nullptr) return {};
  return demangle(std::string(name, std::strcspn(name, "@")).c_str());
}

// Local functions and lambdas have their namespaces and parameters in the symbol table only. Its
// name must have the known one in it: one body may be kept for two functions that are alike.
void complete(std::string& function, const char* symbol) {
  if (symbol == nullptr) return;
  if (function.empty()) {
    function = plain_name(symbol);
  } else if (std::strncmp(symbol, "_Z", 2) == 0) {
    std::string full = plain_name(symbol);
    if (full.find(function) != std::string::npos) function = std::move(full);
  }
}

}  // namespace

void look_up(const ObjectFile& object, const SymbolOptions& options,
             std::span<const uint64_t> offsets, AnswerSink& sink) {
  Session session{&options, find_object(object, options)};
  FoundObject& files = session.files;
  if (files.status != LookUpStatus::kFound) return sink.status(files.status, files.detail);
  // On another machine the debug file alone may be there: it has the symbols and the headers too.
  if (!files.main) {
    files.main = std::move(files.debug);
    files.main_path = std::exchange(files.debug_path, "");
  }
  const std::unique_ptr<Dwfl, void (*)(Dwfl*)> dwfl(dwfl_begin(&kCallbacks), dwfl_end);
  Dwfl_Module* module = nullptr;
  if (dwfl) {
    dwfl_report_begin(dwfl.get());
    // Base 0, plus the addresses of its headers: addresses are those of the file.
    module =
        dwfl_report_elf(dwfl.get(), "object", files.main_path.c_str(), files.main.get(), 0, true);
    if (module != nullptr) files.main.release();  // libdwfl's now
    dwfl_report_end(dwfl.get(), nullptr, nullptr);
  }
  if (module == nullptr) return sink.status(LookUpStatus::kDamaged, files.main_path);
  void** user_data = nullptr;
  dwfl_module_info(module, &user_data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  *user_data = &session;
  sink.status(LookUpStatus::kFound, files.main_path);

  Dwarf_Addr bias = 0;
  Dwarf* dwarf = dwfl_module_getdwarf(module, &bias);
  const FunctionTable functions(module);
  std::unique_ptr<DwarfUnits> units;
  if (dwarf != nullptr) units = std::make_unique<DwarfUnits>(dwarf);
  // Unit by unit: what libdw and DwarfUnits make of one is used while it is there.
  struct Order {
    uint32_t unit, index;
  };
  std::vector<Order> order;
  for (uint32_t i = 0; i < offsets.size(); ++i) {
    order.push_back({units ? units->unit_of(offsets[i] - bias) : DwarfUnits::kNone, i});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Order& a, const Order& b) { return a.unit < b.unit; });
  std::vector<AnswerSink::Line> lines;
  for (const auto [unit, index] : order) {
    const uint64_t offset = offsets[index];
    lines.clear();
    const bool full = unit != DwarfUnits::kNone && units->describe(unit, offset - bias, lines);
    if (lines.empty()) lines.emplace_back();
    // The outermost is the function that the linker knows.
    if (!full) complete(lines.back().function, functions.name_of(offset));
    if (lines.size() == 1 && lines[0].function.empty() && lines[0].line == 0) continue;
    sink.answer(index, lines);
  }
}

}  // namespace memscope
