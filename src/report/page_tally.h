// What a report has of each kind of thing, and how much of it there was: the page says what was
// left out.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace memscope {

class PageTally {
 public:
  void add(const std::string& what, uint64_t kept, uint64_t all) {
    Count& count = counts_[what];
    count.kept += kept;
    count.all += all;
  }
  void one(const std::string& what, bool kept) { add(what, kept ? 1 : 0, 1); }

  // [{what, kept, all}], only where something is missing.
  nlohmann::ordered_json left_out() const {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [what, count] : counts_) {
      if (count.kept >= count.all) continue;
      list.push_back({{"what", what}, {"kept", count.kept}, {"all", count.all}});
    }
    return list;
  }

 private:
  struct Count {
    uint64_t kept = 0, all = 0;
  };
  std::map<std::string, Count> counts_;
};

}  // namespace memscope
