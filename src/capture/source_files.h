// Which source files the recorded stacks name, so that the agent's thread can keep their text as it
// was when first seen (the report quotes statements of a program that may be edited meanwhile).
//
// want() is called once per frame definition, never per event: a lock-free set of hashes and a
// fixed array of paths. Files of the standard library and of installed packages are not wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace/records.h"

namespace memscope::capture::source_files {

inline constexpr size_t kMaxFileBytes = size_t{1} << 20;

void want(std::string_view path) noexcept;

// The next wanted file that was not taken yet, read whole; false if there is none (or none that can
// be read). `write(SourceRecord)` gets it; the text is valid during the call. `process_start_ns`:
// epoch; a file changed after it is flagged. `budget` is what may still be kept, in bytes.
// The agent's thread only.
bool take_next(uint64_t process_start_ns, size_t* budget, void (*write)(const SourceRecord&));

void reset_after_fork();

}  // namespace memscope::capture::source_files
