#include "analysis/site_match.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace memscope {
namespace {

// More candidates of one likeness than this are paired in order: nobody could tell them apart.
constexpr size_t kMaxCandidates = 256;

std::string_view file_name(const SiteFrame& site) {
  std::string_view path = site.file ? std::string_view(*site.file) : std::string_view();
  return path.substr(path.rfind('/') + 1);
}

// Directories two paths have in common, from the end.
int common_tail(const SiteFrame& a, const SiteFrame& b) {
  if (!a.file || !b.file) return 0;
  std::string_view left = *a.file, right = *b.file;
  int parts = 0;
  while (!left.empty() && !right.empty()) {
    const size_t at = left.rfind('/'), other = right.rfind('/');
    if (left.substr(at + 1) != right.substr(other + 1)) break;
    ++parts;
    left = at == std::string_view::npos ? "" : left.substr(0, at);
    right = other == std::string_view::npos ? "" : right.substr(0, other);
  }
  return parts;
}

// What two lines have to share in a pass; nullopt where the pass is not about such a line.
std::optional<std::string> likeness(const SiteFrame& site, int pass) {
  const bool by_text = pass < 2, whole_path = pass % 2 == 0;
  if (by_text && !site.text) return std::nullopt;
  std::string key(whole_path ? std::string_view(site.file ? *site.file : "") : file_name(site));
  key += '\n';
  key += site.function;
  key += '\n';
  key += by_text ? *site.text : std::to_string(site.line.value_or(0));
  return key;
}

struct Candidates {
  std::vector<size_t> base, now;
};

struct Likely {
  int common = 0;
  int64_t apart = 0;
  size_t base = 0, now = 0;
};

}  // namespace

std::vector<std::pair<size_t, size_t>> match_sites(std::span<const SiteFrame> base,
                                                   std::span<const SiteFrame> now) {
  std::vector<std::pair<size_t, size_t>> pairs;
  std::vector<bool> base_taken(base.size()), now_taken(now.size());
  for (int pass = 0; pass < 4; ++pass) {
    std::map<std::string, Candidates> alike;
    for (size_t i = 0; i < base.size(); ++i) {
      if (base_taken[i]) continue;
      if (auto key = likeness(base[i], pass)) alike[*std::move(key)].base.push_back(i);
    }
    for (size_t i = 0; i < now.size(); ++i) {
      if (now_taken[i]) continue;
      const auto key = likeness(now[i], pass);
      if (!key) continue;
      if (const auto found = alike.find(*key); found != alike.end()) {
        found->second.now.push_back(i);
      }
    }
    for (auto& [key, candidates] : alike) {
      if (candidates.base.size() > kMaxCandidates) candidates.base.resize(kMaxCandidates);
      if (candidates.now.size() > kMaxCandidates) candidates.now.resize(kMaxCandidates);
      std::vector<Likely> likely;
      for (const size_t b : candidates.base) {
        for (const size_t n : candidates.now) {
          // Two statements known to differ are two, though they are on the same line.
          if (pass >= 2 && base[b].text && now[n].text) continue;
          likely.push_back({common_tail(base[b], now[n]),
                            std::llabs(base[b].line.value_or(0) - now[n].line.value_or(0)), b, n});
        }
      }
      std::stable_sort(likely.begin(), likely.end(), [](const Likely& x, const Likely& y) {
        return x.common != y.common ? x.common > y.common : x.apart < y.apart;
      });
      for (const Likely& pair : likely) {
        if (base_taken[pair.base] || now_taken[pair.now]) continue;
        base_taken[pair.base] = now_taken[pair.now] = true;
        pairs.emplace_back(pair.base, pair.now);
      }
    }
  }
  return pairs;
}

}  // namespace memscope
