// Python functions as msMemScope traces them, from a csv of their own or from a db's tables.
//
//   FuncInfo,StartTime(ns),EndTime(ns),Thread Id,Process Id       python_trace_<time>.csv
//                                                                 tables python_trace_<pid>
//
// They are an extra: what cannot be read of them is left out.
#pragma once

#include <filesystem>

#include "import/db_file.h"
#include "import/row_events.h"

namespace memscope {

void read_python_csv(const std::filesystem::path& path, RowEvents& events);
void read_python_tables(const DbFile& file, RowEvents& events);

}  // namespace memscope
