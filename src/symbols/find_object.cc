#include "symbols/find_object.h"

#include <filesystem>
#include <optional>

#include "symbols/debuginfod.h"

namespace memscope {
namespace {

constexpr const char* kDebugRoot = "/usr/lib/debug";

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}
std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}
std::string join(std::string folder, const std::string& name) {
  return folder.append("/").append(name);
}
// "/.build-id/ab/cdef..." under a folder with debug files.
std::string by_build_id(const std::string& build_id) {
  return "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2);
}

std::vector<std::string> debug_roots(const SymbolOptions& options) {
  std::vector<std::string> roots = options.debug_paths;
  if (!options.sysroot.empty()) roots.push_back(options.sysroot + kDebugRoot);
  roots.emplace_back(kDebugRoot);
  return roots;
}

bool has_build_id(const std::string& build_id) {
  return build_id.size() > 2;
}

class Finder {
 public:
  Finder(const ObjectFile& object, const SymbolOptions& options)
      : object_(object), options_(options) {}

  FoundObject find() {
    find_main();
    find_debug();
    if (found_.main || found_.debug) found_.status = LookUpStatus::kFound;
    return std::move(found_);
  }

 private:
  void refuse(LookUpStatus status, const std::string& path) {
    if (found_.status != LookUpStatus::kMissing) return;  // the first says it
    found_.status = status;
    found_.detail = path;
  }

  // Takes the file if it is the object.
  bool try_main(const std::string& path, bool may_differ) {
    FileHandle file = open_regular(path);
    if (!file) return false;
    auto identity = identify_elf(file.get());
    if (!identity) {
      if (!may_differ) refuse(LookUpStatus::kDamaged, path);
      return false;
    }
    const bool same = has_build_id(object_.build_id)
                          ? identity->build_id == object_.build_id
                          : object_.mtime_ns != 0 && modified_ns(file.get()) == object_.mtime_ns;
    if (!same) {
      if (!may_differ) {
        refuse(has_build_id(object_.build_id) || object_.mtime_ns != 0 ? LookUpStatus::kMismatch
                                                                       : LookUpStatus::kUnknowable,
               path);
      }
      return false;
    }
    found_.main = std::move(file);
    found_.main_path = path;
    identity_ = std::move(identity);
    return true;
  }

  void find_main() {
    const std::string& path = object_.path;
    if (!options_.sysroot.empty() && try_main(options_.sysroot + path, false)) return;
    if (try_main(path, false)) return;
    for (const std::string& root : options_.debug_paths) {
      if (try_main(root + path, true) || try_main(root + "/" + name_of(path), true)) return;
      if (has_build_id(object_.build_id) && try_main(root + by_build_id(object_.build_id), true)) {
        return;
      }
    }
  }

  bool try_debug(const std::string& path, bool by_link) {
    if (path == found_.main_path) return false;
    FileHandle file = open_regular(path);
    if (!file) return false;
    const auto identity = identify_elf(file.get());
    if (!identity) return false;
    const bool same = has_build_id(object_.build_id)
                          ? identity->build_id == object_.build_id
                          : by_link && debug_link_crc(file.get()) == identity_->debug_link_crc;
    if (!same) {
      if (by_link) refuse(LookUpStatus::kMismatch, path);
      return false;
    }
    found_.debug = std::move(file);
    found_.debug_path = path;
    return true;
  }

  void find_debug() {
    const bool known = has_build_id(object_.build_id);
    if (known) {
      for (const std::string& root : debug_roots(options_)) {
        if (try_debug(root + by_build_id(object_.build_id) + ".debug", false)) return;
      }
    }
    if (identity_ && !identity_->debug_link.empty()) {
      const std::string folder = folder_of(found_.main_path), name = identity_->debug_link;
      if (try_debug(folder + "/" + name, true) || try_debug(folder + "/.debug/" + name, true)) {
        return;
      }
      for (const std::string& root : debug_roots(options_)) {
        const std::string below = root + folder_of(object_.path);
        if (try_debug(join(below, name), true) || try_debug(join(root, name), true)) {
          return;
        }
      }
    }
    if (known && options_.debuginfod) {
      const std::string path = debuginfod_file(object_.build_id);
      if (!path.empty()) try_debug(path, false);
    }
  }

  const ObjectFile& object_;
  const SymbolOptions& options_;
  FoundObject found_;
  std::optional<ElfIdentity> identity_;
};

}  // namespace

FoundObject find_object(const ObjectFile& object, const SymbolOptions& options) {
  return Finder(object, options).find();
}

FileHandle find_alt_file(const std::string& debug_path, const ElfIdentity& debug,
                         const SymbolOptions& options, std::string& path) {
  if (debug.alt_link.empty() || !has_build_id(debug.alt_build_id)) return {};
  std::vector<std::string> paths;
  for (const std::string& root : debug_roots(options)) {
    paths.push_back(root + by_build_id(debug.alt_build_id) + ".debug");
  }
  if (debug.alt_link.front() == '/') {
    if (!options.sysroot.empty()) paths.push_back(options.sysroot + debug.alt_link);
    paths.push_back(debug.alt_link);
  } else {
    // Relative to the file it stands in, links resolved: Debian's ".../.build-id/ab/x.debug" are.
    std::error_code error;
    const auto real = std::filesystem::weakly_canonical(debug_path, error);
    paths.push_back(folder_of(error ? debug_path : real.string()) + "/" + debug.alt_link);
  }
  for (const std::string& candidate : paths) {
    FileHandle file = open_regular(candidate);
    if (!file) continue;
    const auto identity = identify_elf(file.get());
    if (!identity || identity->build_id != debug.alt_build_id) continue;
    path = candidate;
    return file;
  }
  return {};
}

}  // namespace memscope
