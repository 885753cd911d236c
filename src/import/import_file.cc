#include "import/import_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "import/csv_rows.h"
#include "import/db_rows.h"
#include "import/find_inputs.h"
#include "import/python_rows.h"
#include "import/row_events.h"

namespace memscope {

namespace fs = std::filesystem;

namespace {

using Imported = Result<std::shared_ptr<const ImportedFile>>;

// config.json of the process's directory, as text by key; none where there is none or it is odd.
void read_settings(ImportedFile& file) {
  const fs::path dump = fs::absolute(file.path).parent_path();
  if (dump.filename() != "dump") return;
  const auto config = InputFile::open(dump.parent_path().parent_path() / "config.json");
  constexpr uint64_t kMaxConfig = 1 << 20;
  if (!config || config.value().size() > kMaxConfig) return;
  std::string text(config.value().size(), '\0');
  text.resize(config.value().read_at(0, text.data(), text.size()));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return;
  constexpr size_t kMaxSettings = 1000;
  for (const auto& [key, value] : json.items()) {
    if (file.settings.size() == kMaxSettings) break;
    file.settings[key] = value.is_string()
                             ? value.get<std::string>()
                             : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

// Python functions of the same process, in files beside the csv.
void read_python_traces(const fs::path& dump, RowEvents& events) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(dump.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("python_trace_") && entry->path().extension() == ".csv") {
      found.push_back(entry->path());
    }
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& path : found) {
    if (file_kind(path) == FileKind::kPythonTrace) read_python_csv(path, events);
  }
}

Imported finished(std::shared_ptr<ImportedFile> file, std::string_view unit) {
  if (auto sorted = file->spool.finish(); !sorted) return sorted.error();
  if (file->rows == 0) {
    const std::string name = file->path.string();
    if (!file->broken.empty()) return Error{file->broken};
    if (file->bad_rows == 0) return Error{name + ": no rows in it; nothing was recorded"};
    return Error{name + ":" + std::to_string(file->first_bad_line) + ": " + file->first_problem +
                 "; none of its " + std::to_string(file->bad_rows) + " " + std::string(unit) +
                 " can be used; give a dump that msMemScope or `msmemscope convert` wrote"};
  }
  for (ImportedProcess& process : file->processes) {
    std::sort(process.windows.begin(), process.windows.end());
  }
  read_settings(*file);
  return std::shared_ptr<const ImportedFile>(std::move(file));
}

}  // namespace

Imported import_csv(const fs::path& path) {
  auto rows = CsvRows::open(path);
  if (!rows) return rows.error();
  auto file = std::make_shared<ImportedFile>();
  file->path = path;
  RowEvents events(*file, false);
  for (CsvRows::Row row; rows.value().next(row) && !file->spool.failed();) {
    if (row.problem.empty()) {
      events.add(row.cells);
    } else {
      events.bad(row.cells, std::move(row.problem));
    }
  }
  file->headers = rows.value().headers();
  read_python_traces(path, events);
  return finished(std::move(file), "lines");
}

Imported import_db(const fs::path& path) {
  auto opened = DbRows::open(path);
  if (!opened) return opened.error();
  DbRows& rows = opened.value();
  auto file = std::make_shared<ImportedFile>();
  file->path = path;
  RowEvents events(*file, true);
  for (FileRow row; !file->spool.failed() && rows.next(row);) events.add(row);
  file->broken = rows.error();
  read_python_tables(rows.file(), events);
  return finished(std::move(file), "rows");
}

}  // namespace memscope
