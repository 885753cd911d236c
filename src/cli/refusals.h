// What the processes of a run could not be recorded for, and which programs could not be traced:
// the agent in each of them says it here (capture/launcher_line.h), for there is no trace to say it
// in.
#pragma once

#include <string>
#include <vector>

namespace memscope::cli {

class Refusals {
 public:
  // Listens, at a name of its own or at the one given; where that fails, nothing is heard.
  explicit Refusals(const std::string& given = "");
  ~Refusals();
  Refusals(const Refusals&) = delete;
  Refusals& operator=(const Refusals&) = delete;

  // For MSMEMSCOPE_LAUNCHER; "" where nobody listens.
  const std::string& name() const { return name_; }
  // The lines that have come, each once, the first ones first. The kernel keeps a few only.
  std::vector<std::string> heard() const;

 private:
  int fd_ = -1;
  std::string name_;
};

}  // namespace memscope::cli
