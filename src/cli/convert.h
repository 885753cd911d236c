// Inputs as msMemScope's csv or db: what `convert` and the end of a launched run share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/where.h"
#include "export/dump_files.h"

namespace memscope::cli {

struct ConvertRequest {
  std::vector<std::string> inputs;
  bool all_runs = false;
  std::string target;
  bool is_directory = false;         // else a file: of one process and one device
  std::optional<DumpFormat> format;  // a file's is its suffix; a directory's: as its run was asked
  std::optional<Device> device;      // only this one
  std::optional<std::string> call_stack;   // "c:10,python", "none"; else as the process was asked
  std::optional<std::string> events;       // "alloc,free"; likewise
  uint32_t first_step = 0, last_step = 0;  // 0 = no bound
  bool compat = false;
  bool quiet = false;  // no line for a file written
};

// The exit status: 0, or 2 after one line on stderr. What can be read is written.
int convert(const ConvertRequest& request);

}  // namespace memscope::cli
