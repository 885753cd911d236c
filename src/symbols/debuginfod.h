// Debug files from the servers that DEBUGINFOD_URLS names. libdebuginfod is loaded only when it is
// asked for: who does not ask has nothing on this machine talk to a network.
#pragma once

#include <string>

namespace memscope {

// The debug file's place in libdebuginfod's cache; "" where there is none, or no library.
std::string debuginfod_file(const std::string& build_id);

}  // namespace memscope
