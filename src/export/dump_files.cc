#include "export/dump_files.h"

#include <algorithm>
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

std::filesystem::path DumpFiles::file_of(const Place& place, Device device) const {
  return std::filesystem::path(place.directory) / ("device_" + dump_device_id(device)) / "dump" /
         ("memscope_dump_" + place.when + (format_ == DumpFormat::kCsv ? ".csv" : ".db"));
}

// A program that becomes another keeps its pid, and so do processes of two machines: two within one
// second need two names.
DumpFiles::Place DumpFiles::place_for(uint64_t pid, const std::string& identity, uint64_t begin,
                                      const std::vector<Device>& devices) {
  auto seconds = static_cast<time_t>(begin / 1'000'000'000);
  for (;; ++seconds) {
    Place place{.when = stamp(seconds)};
    place.directory =
        target_ / ("msmemscope_" + std::to_string(pid) + "_" + place.when + "_ascend");
    if (owners_.try_emplace(place.directory, identity).first->second != identity) continue;
    const bool taken = std::any_of(devices.begin(), devices.end(), [&](Device device) {
      return files_.contains(file_of(place, device));
    });
    if (!taken) return place;
  }
}

Result<std::vector<DumpFile>> DumpFiles::open(uint64_t pid, const std::string& identity,
                                              uint64_t begin, const std::vector<Device>& devices) {
  std::vector<DumpFile> files;
  if (!is_directory_) {
    auto made = writer(target_, {});
    if (!made) return made.error();
    files.push_back({devices, target_, std::move(made).value()});
    return files;
  }
  const Place place = place_for(pid, identity, begin, devices);
  for (const Device& device : devices) {
    const auto path = file_of(place, device);
    bool known = false;  // cuda:0 and npu:0 are both device 0
    for (DumpFile& file : files) {
      if (file.path != path) continue;
      file.devices.push_back(device);
      known = true;
    }
    if (known) continue;
    const auto dump = path.parent_path();
    auto there = make_directories(dump, &made_);
    if (!there) return there.error();
    auto made = writer(path, dump / ("python_trace_" + place.when + ".csv"));
    if (!made) return made.error();
    files_.insert(path);
    files.push_back({{device}, path, std::move(made).value()});
  }
  return files;
}

void DumpFiles::remove_empty_directories() {
  remove_empty(made_);
}

}  // namespace memscope
