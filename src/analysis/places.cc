#include "analysis/places.h"

#include <algorithm>
#include <array>

namespace memscope {
namespace {

// Packages that allocate on others' behalf, as they stand under site-packages.
constexpr std::array<std::string_view, 9> kFrameworks = {
    "torch", "torch_npu", "torchgen",        "functorch",       "mindspore",
    "numpy", "triton",    "_distutils_hack", "sitecustomize.py"};
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

Place place_of_package(std::string_view name) {
  if (name == "msmemscope") return Place::kTool;
  if (std::find(kFrameworks.begin(), kFrameworks.end(), name) != kFrameworks.end()) {
    return Place::kFramework;
  }
  return Place::kLibrary;
}

}  // namespace

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
