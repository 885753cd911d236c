// A file that appears under its name whole or not at all.
//
//   memscope_dump_20261130021500.csv.k3Xv9a     while it is written, mode 0600
//   memscope_dump_20261130021500.csv            from commit() on; what was there before is replaced
//
//  * A draft that is not committed is removed, also when the process ends by a signal, provided
//    that remove_drafts_on_signals() was called.
//  * A file that is an input is never replaced: create() refuses.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"

namespace memscope {

class DraftFile {
 public:
  // `inputs` are the files that must stay as they are, under whatever name they come.
  static Result<DraftFile> create(const std::filesystem::path& path,
                                  const std::vector<std::filesystem::path>& inputs);

  DraftFile(DraftFile&& other) noexcept;
  DraftFile& operator=(DraftFile&&) = delete;
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;
  ~DraftFile();

  int fd() const { return fd_; }
  const std::string& draft() const { return draft_; }  // where it is now
  const std::string& path() const { return path_; }    // where it will be

  // The file has its name, or is gone.
  Result<void> commit();

 private:
  DraftFile(std::string path, std::string draft, int fd, size_t slot)
      : path_(std::move(path)), draft_(std::move(draft)), fd_(fd), slot_(slot) {}

  std::string path_, draft_;
  int fd_ = -1;
  size_t slot_ = 0;
};

// Makes the directories of `directory` that are not there, mode 0700. Those that it made are added
// to `made`, also where it fails.
Result<void> make_directories(const std::filesystem::path& directory,
                              std::vector<std::filesystem::path>* made = nullptr);
// Removes those that are empty, the last one first: what failed leaves no trace.
void remove_empty(const std::vector<std::filesystem::path>& directories);

// SIGINT, SIGTERM, SIGHUP and SIGQUIT remove the drafts of this process before they end it; SIGXFSZ
// no longer does.
void remove_drafts_on_signals();

// "cannot write FILE: No space left on device", for the errno given.
Error write_error(const std::string& path, int error);

}  // namespace memscope
