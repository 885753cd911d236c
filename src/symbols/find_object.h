// Which files on this machine are an object of the trace, and its debug file.
//
//   the object   under the sysroot, at its recorded path, under each debug path (at its path, by
//   its
//                name, by build-id)
//   debug file   by build-id under each debug path, the sysroot's and this machine's
//                /usr/lib/debug; by the object's .gnu_debuglink; from debuginfod if that is asked
//                for
//
// Every one of them has the recorded build-id; of objects without one the object's file has the
// recorded time of change, the debug file the checksum of the link.
#pragma once

#include <string>

#include "symbols/elf_file.h"
#include "symbols/look_up.h"

namespace memscope {

struct FoundObject {
  LookUpStatus status = LookUpStatus::kMissing;
  std::string detail;      // the file that was refused
  FileHandle main, debug;  // either may be none; both none unless kFound
  std::string main_path, debug_path;
};
FoundObject find_object(const ObjectFile& object, const SymbolOptions& options);

// The file that `debug_path` shares names and types with, by the link in it.
FileHandle find_alt_file(const std::string& debug_path, const ElfIdentity& debug,
                         const SymbolOptions& options, std::string& path);

}  // namespace memscope
