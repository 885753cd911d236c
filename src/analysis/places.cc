#include "analysis/places.h"

#include <algorithm>
#include <array>
#include <span>

namespace memscope {
namespace {

// Packages that allocate on others' behalf, as they stand under site-packages.
constexpr std::array<std::string_view, 10> kFrameworks = {
    "torch", "torch_npu", "torchgen",        "functorch",     "mindspore",
    "numpy", "triton",    "_distutils_hack", "sitecustomize", "nvidia"};
// Files without a path that a library made up.
constexpr std::array<std::string_view, 4> kGenerated = {"<__array_function__", "<eval_with_key>",
                                                        "<torch_package", "<generated"};

bool digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "python3.11", "python3", "python3.13t", "pypy3.10": the folder of a standard library.
bool is_python_folder(std::string_view name) {
  if (name.substr(0, 6) == "python") {
    name.remove_prefix(6);
  } else if (name.substr(0, 4) == "pypy") {
    name.remove_prefix(4);
  } else {
    return false;
  }
  if (!name.empty() && name.back() == 't') name.remove_suffix(1);
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return !name.empty() && digits(name);
  return dot != 0 && digits(name.substr(0, dot)) && digits(name.substr(dot + 1));
}

// `name`: of a folder or file there. What "numpy.libs", "orjson.cpython-311-x86_64-linux-gnu.so"
// and "six.py" belong to stands before the dot.
Place place_of_package(std::string_view name) {
  name = name.substr(0, name.find('.'));
  if (name == "msmemscope") return Place::kTool;
  if (std::find(kFrameworks.begin(), kFrameworks.end(), name) != kFrameworks.end()) {
    return Place::kFramework;
  }
  return Place::kLibrary;
}

// Run times, allocators and interpreters, by the beginning of the file's name.
constexpr std::array<std::string_view, 25> kRunTimes = {
    "libc.so",     "libc-2.",     "libm.so",     "libm-2.",     "libmvec",
    "libpthread",  "libdl.so",    "libdl-2.",    "librt.so",    "librt-2.",
    "ld-linux",    "ld-2.",       "libstdc++",   "libc++",      "libgcc_s",
    "libasan",     "libubsan",    "libtsan",     "liblsan",     "libjemalloc",
    "libtcmalloc", "libmimalloc", "libpython2.", "libpython3.", "libutil.so"};
// Frameworks and what they bring, wherever they are built or installed.
constexpr std::array<std::string_view, 24> kFrameworkObjects = {
    "libtorch",  "libc10",      "libcaffe2", "libshm.so", "libgomp",      "libiomp5",
    "libomp.so", "libopenblas", "libmkl_",   "libnccl",   "libcublas",    "libcudart",
    "libcudnn",  "libcuda.so",  "libcufft",  "libcurand", "libcusparse",  "libcusolver",
    "libnvrtc",  "libnvidia-",  "libascend", "libhccl",   "libmindspore", "libtriton"};
constexpr std::array<std::string_view, 9> kSystemFolders = {
    "/lib/", "/lib64/", "/lib32/", "/usr/", "/bin/", "/sbin/", "/nix/", "/gnu/store/", "/opt/rh/"};

bool begins_with_any(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

// "python3.11", "python", "pypy3": an interpreter's own file.
bool is_interpreter(std::string_view name) {
  return name == "python" || name == "pypy" || is_python_folder(name);
}

// A folder of conda's: everything in it is installed, but for editable packages.
bool is_conda_folder(std::string_view part) {
  return part.find("conda") != std::string_view::npos || part.starts_with("miniforge") ||
         part.starts_with("mambaforge");
}

bool has_conda_folder(std::string_view path) {
  const size_t end = path.rfind('/');
  for (size_t at = 0; end != std::string_view::npos && at < end;) {
    const size_t next = std::min(path.find('/', at), end);
    if (is_conda_folder(path.substr(at, next - at))) return true;
    at = next + 1;
  }
  return false;
}

}  // namespace

Place place_of_object(std::string_view path) {
  if (path.empty() || path.front() != '/') return Place::kStandard;  // "?", "[vdso]"
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("libmsmemscope")) return Place::kTool;
  if (is_interpreter(name) || begins_with_any(name, kRunTimes)) return Place::kStandard;
  if (begins_with_any(name, kFrameworkObjects)) return Place::kFramework;
  const Place place = place_of(path);
  if (place != Place::kUser) return place;
  const bool installed = begins_with_any(path, kSystemFolders) || has_conda_folder(path);
  return installed ? Place::kLibrary : Place::kUser;
}

Place place_of_source(std::string_view file) {
  if (file.empty()) return Place::kUser;
  constexpr std::array<std::string_view, 4> kHeaders = {"/include/c++/", "/include/pybind11/",
                                                        "/include/torch/", "/include/ATen/"};
  for (const std::string_view header : kHeaders) {
    if (file.find(header) != std::string_view::npos) return Place::kLibrary;
  }
  // /usr/src is a place to build in.
  if (file.starts_with("/usr/") && !file.starts_with("/usr/src/")) return Place::kLibrary;
  return file.front() == '/' ? place_of(file) : Place::kUser;
}

Place place_of(std::string_view file) {
  if (file.empty()) return Place::kStandard;
  if (file.front() == '<') {
    if (file.substr(0, 8) == "<frozen ") return Place::kStandard;
    for (const std::string_view generated : kGenerated) {
      if (file.substr(0, generated.size()) == generated) return Place::kFramework;
    }
    return Place::kUser;  // <stdin>, <string>, <ipython-input-...>
  }
  // Component by component; the last that decides wins: a virtual environment may lie under a
  // folder called site-packages, and a package may have a folder called lib/python3.
  Place place = Place::kUser;
  std::string_view before;
  for (size_t at = 0; at < file.size();) {
    size_t end = file.find('/', at);
    if (end == std::string_view::npos) end = file.size();
    const std::string_view part = file.substr(at, end - at);
    at = end + 1;
    if (part.empty()) continue;
    if (before == "site-packages" || before == "dist-packages") {
      place = place_of_package(part);
    } else if ((is_python_folder(part) && (before == "lib" || before == "lib64")) ||
               (part.starts_with("python") && part.ends_with(".zip"))) {
      place = Place::kStandard;
    } else if (part.substr(0, 14) == "torchinductor_" || part == "torchinductor") {
      place = Place::kFramework;
    } else if (part == "msmemscope" && before == "python" && at < file.size()) {
      place = Place::kTool;  // its own source tree
    }
    before = part;
  }
  return place;
}

}  // namespace memscope
