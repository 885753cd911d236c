// Reads a csv or db of msMemScope from end to end.
//
// Good rows are used, bad ones counted, the first of them kept with its line; what a dump's
// directory holds of the same process is read too:
//
//   msmemscope_<pid>_<time>_ascend/
//     config.json                                the settings
//     device_<id>/dump/memscope_dump_<time>.csv  given
//                      python_trace_*.csv        Python functions (a db has them in tables)
//
// An error only where no row can be used. Memory and temporary disk space: event_spool.h, and the
// tables of call_stacks.h.
#pragma once

#include <filesystem>
#include <memory>

#include "core/result.h"
#include "import/imported_file.h"

namespace memscope {

Result<std::shared_ptr<const ImportedFile>> import_csv(const std::filesystem::path& path);
Result<std::shared_ptr<const ImportedFile>> import_db(const std::filesystem::path& path);

}  // namespace memscope
