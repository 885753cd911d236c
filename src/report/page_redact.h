// What a report leaves out, so that it can be sent to somebody else.
//
//   paths       only the name of the file; two files of one name stay two: "utils.py (2)"
//   arguments   of a command line only the program
//   host        "host-1", also where it is part of a directory's name
//   source      no line of any source file, no statement
//
// Paths are found under the keys that hold them and, absolute ones, within any other text. Names of
// functions, variables, owners, threads and marks stay: they are what the report is about.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace memscope {

struct Redaction {
  bool paths = false, arguments = false, host = false, source = false;

  bool any() const { return paths || arguments || host || source; }
  std::vector<std::string> names() const;  // of what is set
  // "paths,host", "all"
  static Result<Redaction> from_text(std::string_view text);
};

class Redactor {
 public:
  using Json = nlohmann::ordered_json;

  explicit Redactor(Redaction what) : what_(what) {}

  // The answer `session`, before anything is redacted: its hosts and its statements are known then.
  void learn(const Json& session);
  // Every string in an answer.
  void apply(Json& answer);

  std::string path(std::string_view whole);
  std::string text(std::string_view free);

 private:
  void apply_to(Json& object, const std::string& key, Json& value);
  void learn_frame(const Json& frame);
  void learn_paths(const Json& value);
  std::string without_hosts(std::string text) const;
  std::string without_statements(std::string text) const;

  Redaction what_;
  std::map<std::string, std::string, std::less<>> short_;  // of a path
  std::map<std::string, int, std::less<>> uses_;           // of a name
  std::map<std::string, std::string> hosts_;
  std::vector<std::string> statements_;
  std::vector<std::string> awkward_paths_;  // with blanks or the like: found whole or not at all
};

}  // namespace memscope
