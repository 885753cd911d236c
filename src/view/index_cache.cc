#include "view/index_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "view/index_file.h"

namespace memscope::view {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRoomPrefix = "room-";
constexpr const char* kTextName = "text";

// Ours alone: a directory, no link, of this user, closed to others.
bool is_ours(const fs::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

bool make_private(const fs::path& path) {
  if (mkdir(path.c_str(), 0700) == 0) return true;
  return is_ours(path);
}

uint64_t hash_of(const std::string& text, uint64_t seed) {
  uint64_t hash = seed;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100'0000'01b3;
    hash ^= hash >> 31;
  }
  return hash;
}

// The key itself is in the index, so that a collision of names does no harm.
std::string directory_name(const std::string& key) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash_of(key, 0xcbf2'9ce4'8422'2325)),
                static_cast<unsigned long long>(hash_of(key, 0x9E37'79B9'7F4A'7C15)));
  return text.data();
}

uint64_t bytes_below(const fs::path& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(directory, error)) {
    struct stat status {};
    if (lstat(entry.path().c_str(), &status) == 0) {
      bytes += static_cast<uint64_t>(status.st_blocks) * 512;
    }
  }
  return bytes;
}

// "room-<pid>-XXXXXX" of a process that is no more.
bool is_abandoned(const std::string& name) {
  const long pid =
      std::strtol(name.c_str() + std::char_traits<char>::length(kRoomPrefix), nullptr, 10);
  return pid > 0 && pid != getpid() && kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

void add_file(const fs::path& path, std::string& key) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  key += path.string() + '\0' + std::to_string(status.st_size) + ' ' +
         std::to_string(status.st_mtim.tv_sec) + '.' + std::to_string(status.st_mtim.tv_nsec) +
         ' ' + std::to_string(status.st_ino) + '\n';
}

}  // namespace

IndexCache IndexCache::at_home() {
  fs::path base;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    base = cache;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    base = fs::path(home) / ".cache";
  } else {
    return IndexCache(fs::path());
  }
  std::error_code error;
  fs::create_directories(base, error);
  const fs::path ours = base / "msmemscope";
  // Shared with other things of ours; only the last directory must be closed.
  mkdir(ours.c_str(), 0700);
  return IndexCache(ours / "view");
}

IndexCache::IndexCache(fs::path root) {
  if (root.empty() || !make_private(root)) return;
  root_ = std::move(root);
}

std::optional<fs::path> IndexCache::find(const std::string& key) const {
  if (!usable()) return std::nullopt;
  fs::path directory = root_ / directory_name(key);
  if (!is_ours(directory)) return std::nullopt;
  // Used now: the times of the directory are what evict() goes by.
  utimensat(AT_FDCWD, directory.c_str(), nullptr, 0);
  return directory;
}

fs::path IndexCache::make_room() const {
  if (!usable()) return {};
  std::string pattern = (root_ / (kRoomPrefix + std::to_string(getpid()) + "-XXXXXX")).string();
  return mkdtemp(pattern.data()) == nullptr ? fs::path() : fs::path(pattern);
}

bool IndexCache::commit(const fs::path& room, const std::string& key) const {
  const fs::path target = root_ / directory_name(key);
  std::error_code error;
  fs::remove_all(target, error);  // of a damaged one
  fs::rename(room, target, error);
  return !error;
}

std::optional<std::string> IndexCache::find_text(const std::string& key) const {
  const auto directory = find(key);
  if (!directory) return std::nullopt;
  std::ifstream file(*directory / kTextName, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  // The key stands before it: names of directories are hashes.
  if (!file || !text.starts_with(key)) return std::nullopt;
  return text.substr(key.size());
}

void IndexCache::keep_text(const std::string& key, const std::string& text) const {
  const fs::path room = make_room();
  if (room.empty()) return;
  std::ofstream file(room / kTextName, std::ios::binary);
  file << key << text;
  file.close();
  if (!file || !commit(room, key)) remove(room);
}

void IndexCache::remove(const fs::path& directory) const {
  // Nothing but what lies right in the cache.
  if (!usable() || directory.parent_path() != root_) return;
  std::error_code error;
  fs::remove_all(directory, error);
}

void IndexCache::evict(uint64_t budget) const {
  if (!usable()) return;
  struct Entry {
    fs::path path;
    int64_t used = 0;
    uint64_t bytes = 0;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(root_, error)) {
    if (!is_ours(item.path())) continue;
    const std::string name = item.path().filename().string();
    if (name.starts_with(kRoomPrefix)) {
      if (is_abandoned(name)) remove(item.path());
      continue;
    }
    struct stat status {};
    if (lstat(item.path().c_str(), &status) != 0) continue;
    entries.push_back({item.path(), status.st_mtim.tv_sec, bytes_below(item.path())});
    total += entries.back().bytes;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  // The newest stays, whatever its size: it is being looked at.
  for (size_t i = 0; i + 1 < entries.size() && total > budget; ++i) {
    remove(entries[i].path);
    total -= entries[i].bytes;
  }
}

namespace {

// The files that a large log goes on in.
void add_segments(const fs::path& directory, std::string& key) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& item : fs::directory_iterator(directory, error)) {
    const std::string name = item.path().filename().string();
    if (name.starts_with("trace.") && name.ends_with(".msm")) found.push_back(item.path());
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& file : found) add_file(file, key);
}

}  // namespace

std::string input_key(const fs::path& path) {
  std::string key = "msmemscope " MEMSCOPE_VERSION " index " + std::to_string(kIndexVersion) + '\n';
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  key += whole.string() + '\n';
  if (!fs::is_directory(whole, error)) {
    add_file(whole, key);
    add_file(whole.parent_path() / "hot.slab", key);
    add_segments(whole.parent_path(), key);
    return key;
  }
  for (const char* name : {"trace.msm", "hot.slab", "meta.json"}) add_file(whole / name, key);
  add_segments(whole, key);
  return key;
}

}  // namespace memscope::view
