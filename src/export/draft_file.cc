#include "export/draft_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <initializer_list>

namespace memscope {

namespace fs = std::filesystem;

namespace {

constexpr std::initializer_list<int> kEndings = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// The drafts' names where a signal handler can read them: no lock, no heap. A draft beyond the last
// slot is only not removed by a signal.
constexpr size_t kSlots = 64;
struct Slot {
  std::atomic<bool> used{false}, ready{false};
  char name[PATH_MAX] = {};
};
std::array<Slot, kSlots> slots;

size_t take_slot(const std::string& name) {
  if (name.size() >= sizeof(Slot::name)) return kSlots;
  for (size_t i = 0; i < kSlots; ++i) {
    if (slots[i].used.exchange(true)) continue;
    std::memcpy(slots[i].name, name.c_str(), name.size() + 1);
    slots[i].ready = true;
    return i;
  }
  return kSlots;
}

void give_slot(size_t slot) {
  if (slot >= kSlots) return;
  slots[slot].ready = false;
  slots[slot].used = false;
}

void on_signal(int signal) {
  for (Slot& slot : slots) {
    if (slot.ready) ::unlink(slot.name);
  }
  // SA_RESETHAND has put the default back; the signal is delivered once this handler returns.
  ::raise(signal);
}

bool is_same_file(const struct stat& file, const fs::path& path) {
  struct stat other {};
  return ::stat(path.c_str(), &other) == 0 && other.st_dev == file.st_dev &&
         other.st_ino == file.st_ino;
}

}  // namespace

Error write_error(const std::string& path, int error) {
  std::string line = "cannot write " + path + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) {
    line += "; nothing was written there, free some space or choose another place";
  }
  return Error{line};
}

Result<DraftFile> DraftFile::create(const fs::path& path, const std::vector<fs::path>& inputs) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0) {
    for (const fs::path& input : inputs) {
      if (is_same_file(there, input)) {
        return Error{path.string() +
                     " is the input itself; inputs are never changed, choose "
                     "another name with -o"};
      }
    }
    if (!S_ISREG(there.st_mode)) {
      return Error{path.string() + " is there and is no file; choose another name with -o"};
    }
  }
  // SQLite would take these for parts of the new file.
  for (const char* part : {"-wal", "-journal"}) {
    const std::string beside = path.string() + part;
    if (::access(beside.c_str(), F_OK) == 0) {
      return Error{beside +
                   " belongs to a database that another program has open or left behind; choose "
                   "another name with -o"};
    }
  }
  std::string draft = path.string() + ".XXXXXX";
  // A signal between the two would find a file that it does not know.
  sigset_t ending, before;
  sigemptyset(&ending);
  for (const int signal : kEndings) sigaddset(&ending, signal);
  pthread_sigmask(SIG_BLOCK, &ending, &before);
  const int fd = ::mkostemp(draft.data(), O_CLOEXEC);  // mode 0600, and never a file that is there
  const int error = errno;
  const size_t slot = fd < 0 ? kSlots : take_slot(draft);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (fd < 0) return write_error(path.string(), error);
  return DraftFile(path.string(), std::move(draft), fd, slot);
}

DraftFile::DraftFile(DraftFile&& other) noexcept
    : path_(std::move(other.path_)),
      draft_(std::move(other.draft_)),
      fd_(std::exchange(other.fd_, -1)),
      slot_(std::exchange(other.slot_, kSlots)) {}

DraftFile::~DraftFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(draft_.c_str());
  give_slot(slot_);
}

Result<void> DraftFile::commit() {
  // A network file system says only now that the disk is full. No fsync: what a power cut takes can
  // be made again from the input, and gigabytes take their time.
  int error = ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
  if (error == 0 && ::rename(draft_.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(draft_.c_str());
  give_slot(slot_);
  if (error != 0) return write_error(path_, error);
  return {};
}

Result<void> make_directories(const fs::path& directory, std::vector<fs::path>* made) {
  fs::path upto;
  for (const fs::path& part : directory) {
    upto /= part;
    if (::mkdir(upto.c_str(), 0700) == 0) {
      if (made != nullptr) made->push_back(upto);
    } else if (errno != EEXIST) {
      const int error = errno;
      std::error_code ignored;
      if (fs::is_directory(upto, ignored)) continue;  // EROFS, EACCES on what is there
      return Error{"cannot make the directory " + upto.string() + ": " + std::strerror(error) +
                   "; choose another place with -o"};
    }
  }
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return Error{directory.string() + " is there and is no directory; choose another with -o"};
  }
  return {};
}

void remove_empty(const std::vector<fs::path>& directories) {
  for (auto path = directories.rbegin(); path != directories.rend(); ++path) {
    ::rmdir(path->c_str());  // does nothing to one that has something in it
  }
}

void remove_drafts_on_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : kEndings) {
    struct sigaction old {};
    // One that is ignored (nohup) stays so.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // past `ulimit -f` a write fails, as on a full disk
}

}  // namespace memscope
