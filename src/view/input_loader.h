// From a path to an InputIndex for each process in it: out of the cache where they are there and of
// today, else built.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "symbols/look_up.h"
#include "view/index_cache.h"
#include "view/input_index.h"

namespace memscope::view {

struct LoadOptions {
  const IndexCache* cache = nullptr;           // null: columns in memory, nothing kept
  SymbolOptions symbols;                       // where the names of kept inputs come from
  std::function<bool(double share)> progress;  // false stops; the load then fails
};

struct LoadedInput {
  std::shared_ptr<InputIndex> index;
  bool fresh = false;  // built just now, and in `room`
  std::filesystem::path room;
  std::filesystem::path directory;  // of one out of the cache
  std::string names_key;            // "": no native frames, so no names either
  std::string key;
};

Result<std::vector<LoadedInput>> load_inputs(const std::string& path, const LoadOptions& options);
// Keeps a fresh one for the next time; to be called once somebody looks at it already. Where it
// then lies, "" if it is not kept.
std::filesystem::path keep_input(const LoadedInput& input, const IndexCache& cache);

// Where the names of an index and what is derived of it lie within its directory.
std::filesystem::path derived_directory(const std::filesystem::path& directory,
                                        const std::string& names_key);

}  // namespace memscope::view
