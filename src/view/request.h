// A query's parameters, checked as they are taken: the first thing that is wrong is the answer.
//
//   Params params = Params::from_query("pool=0&width=1920");
//   const int64_t width = params.integer("width", 1, 4096);
//   if (params.bad()) return bad_request(*params.bad());
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace memscope::view {

struct BadParameter {
  std::string message, parameter;
};

class Params {
 public:
  // Of an URL, percent-decoded; of a repeated name the last counts.
  static Params from_query(std::string_view query);
  // Values as they are meant.
  static Params from_values(std::map<std::string, std::string> values);

  bool has(const std::string& name) const { return values_.contains(name); }
  std::string text(const std::string& name, std::string_view otherwise = {});
  // Missing or out of range is bad, and gives `least`; with `otherwise` only the latter.
  int64_t integer(const std::string& name, int64_t least, int64_t most,
                  std::optional<int64_t> otherwise = std::nullopt);
  // A time: a number whose fraction is cut off; may be negative.
  int64_t time(const std::string& name, std::optional<int64_t> otherwise = std::nullopt);
  // One of what `parse` knows.
  template <typename T, typename Parse>
  T choice(const std::string& name, T otherwise, Parse parse) {
    const auto at = values_.find(name);
    if (at == values_.end()) return otherwise;
    if (const std::optional<T> known = parse(at->second)) return *known;
    refuse(name, "no such " + name);
    return otherwise;
  }
  void refuse(const std::string& name, const std::string& message);
  const std::optional<BadParameter>& bad() const { return bad_; }

 private:
  std::map<std::string, std::string> values_;
  std::optional<BadParameter> bad_;
};

// The bytes of a percent-encoded part of an URL; nullopt where it is none.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank);

// What is sent back.
struct Answer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  uint64_t generation = 0;
  std::string file_name;  // a download
  // Where set, the body comes in pieces: appends the next one, false after the last.
  std::function<bool(std::string& piece)> more;
};

}  // namespace memscope::view
