// Which files a dump goes to, and what they are called:
//
//   FILE.csv, FILE.db                       the one device of one process
//   DIR/msmemscope_<pid>_<ts>_ascend/       a process each
//     device_<id>/dump/                     a device each
//       memscope_dump_<ts>.csv | .db
//       python_trace_<ts>.csv               csv only; in a db it is a table
//
// <ts> is when the process's recording began, local time: the same process gives the same names,
// and a later dump of it replaces an earlier one. Inputs that are parts of one process (a file a
// device) go to one directory. Directories 0700, files 0600.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/where.h"
#include "export/written_row.h"

namespace memscope {

enum class DumpFormat : uint8_t { kCsv, kDb };

struct DumpFile {
  std::vector<Device> devices;  // none: an input without a block
  std::filesystem::path path;
  std::unique_ptr<RowWriter> writer;
};

class DumpFiles {
 public:
  // `inputs`: files that must not be replaced.
  DumpFiles(std::filesystem::path target, bool is_directory, DumpFormat format, bool compat,
            std::vector<std::filesystem::path> inputs)
      : target_(std::move(target)),
        is_directory_(is_directory),
        format_(format),
        compat_(compat),
        inputs_(std::move(inputs)) {}

  bool is_directory() const { return is_directory_; }
  bool has_calls() const { return is_directory_ || format_ == DumpFormat::kDb; }
  const std::filesystem::path& target() const { return target_; }

  // The files of one process whose recording began at `begin` (ns since the epoch). `identity`
  // tells processes of one pid apart: inputs of the same one are the same process.
  Result<std::vector<DumpFile>> open(uint64_t pid, const std::string& identity, uint64_t begin,
                                     const std::vector<Device>& devices);
  // After a failure: the directories that were made and have nothing in them go.
  void remove_empty_directories();

 private:
  struct Place {
    std::string directory, when;
  };
  Place place_for(uint64_t pid, const std::string& identity, uint64_t begin,
                  const std::vector<Device>& devices);
  std::filesystem::path file_of(const Place& place, Device device) const;

  Result<std::unique_ptr<RowWriter>> writer(const std::filesystem::path& path,
                                            const std::filesystem::path& calls) const;

  std::filesystem::path target_;
  bool is_directory_;
  DumpFormat format_;
  bool compat_;
  std::vector<std::filesystem::path> inputs_;
  std::map<std::filesystem::path, std::string> owners_;  // directories of this dump: whose
  std::set<std::filesystem::path> files_;                // files of this dump
  std::vector<std::filesystem::path> made_;              // directories
};

}  // namespace memscope
