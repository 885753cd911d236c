// An InputIndex in a directory: its columns are files already; here are the tables beside them.
//
// What is read is not trusted: a file that is damaged, of another version or of another key is an
// error, and the index is made anew.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/result.h"
#include "view/input_index.h"

namespace memscope::view {

// To be raised when columns, tables or the way blocks are made change.
inline constexpr uint32_t kIndexVersion = 3;

// False if it could not be written whole, or a column is not in its file.
bool save_index(const InputIndex& index, const std::string& key,
                const std::filesystem::path& directory);
Result<std::unique_ptr<InputIndex>> load_index(const std::string& key,
                                               const std::filesystem::path& directory);

// Stacks and strings of a reader, as tables of the index: the same stack ids.
void copy_tables(const StackTable& stacks, const StringTable& strings, InputIndex& index);

}  // namespace memscope::view
