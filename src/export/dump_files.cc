#include "export/dump_files.h"

#include <array>
#include <ctime>

#include "export/csv_writer.h"
#include "export/db_writer.h"
#include "export/draft_file.h"
#include "export/dump_rows.h"

namespace memscope {
namespace {

// YYYYmmddHHMMSS, local.
std::string stamp(time_t seconds) {
  struct tm local {};
  localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  const size_t size = strftime(text.data(), text.size(), "%Y%m%d%H%M%S", &local);
  return {text.data(), size};
}

}  // namespace

Result<std::unique_ptr<RowWriter>> DumpFiles::writer(const std::filesystem::path& path,
                                                     const std::filesystem::path& calls) const {
  if (format_ == DumpFormat::kCsv) {
    auto made = CsvWriter::create(path, calls, inputs_);
    if (!made) return made.error();
    return std::unique_ptr<RowWriter>(std::move(made).value());
  }
  auto made = DbWriter::create(path, inputs_, compat_);
  if (!made) return made.error();
  return std::unique_ptr<RowWriter>(std::move(made).value());
}

Result<std::vector<DumpFile>> DumpFiles::open(uint64_t pid, uint64_t begin,
                                              const std::vector<Device>& devices) {
  std::vector<DumpFile> files;
  if (!is_directory_) {
    auto made = writer(target_, {});
    if (!made) return made.error();
    files.push_back({devices, target_, std::move(made).value()});
    return files;
  }
  auto seconds = static_cast<time_t>(begin / 1'000'000'000);
  std::filesystem::path directory;
  // A program that becomes another keeps its pid: two within one second need two names.
  for (std::string when = stamp(seconds);; when = stamp(++seconds)) {
    directory = target_ / ("msmemscope_" + std::to_string(pid) + "_" + when + "_ascend");
    if (taken_.insert(directory).second) break;
  }
  const std::string when = stamp(seconds);
  for (const Device& device : devices) {
    const auto dump = directory / ("device_" + dump_device_id(device)) / "dump";
    const auto path =
        dump / ("memscope_dump_" + when + (format_ == DumpFormat::kCsv ? ".csv" : ".db"));
    bool known = false;  // cuda:0 and npu:0 are both device 0
    for (DumpFile& file : files) {
      if (file.path != path) continue;
      file.devices.push_back(device);
      known = true;
    }
    if (known) continue;
    auto there = make_directories(dump);
    if (!there) return there.error();
    auto made = writer(path, dump / ("python_trace_" + when + ".csv"));
    if (!made) return made.error();
    files.push_back({{device}, path, std::move(made).value()});
  }
  return files;
}

}  // namespace memscope
