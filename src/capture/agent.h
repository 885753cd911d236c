// What the agent does when told: the functions behind agent_api.h, and how it comes to life and
// follows fork().
#pragma once

namespace memscope::capture::agent {

// All return nullptr, or a static line for the user. Control lock not held by the caller.
const char* install();
const char* start();
const char* stop();
const char* stop_at_exit();
const char* shutdown();
const char* exiting();

// Around fork(), called by Python's register_at_fork: by several threads at once, by one thread
// more than once (a package loaded twice), with tensors in between.
void fork_before();
void fork_after_parent();
void fork_after_child();

}  // namespace memscope::capture::agent
