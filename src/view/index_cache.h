// Where indices are kept: $XDG_CACHE_HOME/msmemscope/view (else ~/.cache/...), never beside the
// user's data. A directory an index, made under another name and renamed when it is whole.
//
// Directories are 0700 and must be this user's. Where none can be made there is no cache, which is
// no error: indices then live in memory. Over the budget the indices used longest ago go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace memscope::view {

class IndexCache {
 public:
  static constexpr uint64_t kBudget = uint64_t{16} << 30;  // bytes

  // At the usual place, or (tests) at `root`.
  static IndexCache at_home();
  explicit IndexCache(std::filesystem::path root);

  bool usable() const { return !root_.empty(); }
  // The index of a key, if there is one.
  std::optional<std::filesystem::path> find(const std::string& key) const;
  // A new, empty directory; "" where there is none to be had.
  std::filesystem::path make_room() const;
  // Takes what make_room() gave in as the index of `key`. False if it could not.
  bool commit(const std::filesystem::path& room, const std::string& key) const;
  void remove(const std::filesystem::path& directory) const;
  // A text kept under a key of its own.
  std::optional<std::string> find_text(const std::string& key) const;
  void keep_text(const std::string& key, const std::string& text) const;
  // Deletes what was used longest ago until all is within the budget, and rooms nobody works in.
  void evict(uint64_t budget = kBudget) const;

 private:
  std::filesystem::path root_;
};

// What identifies an input's content: paths, sizes, times of change and this index's version.
std::string input_key(const std::filesystem::path& path);

}  // namespace memscope::view
