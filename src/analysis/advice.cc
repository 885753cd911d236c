#include "analysis/advice.h"

namespace memscope {
namespace {

// "train.py:103 (store.append(x))"
std::string short_place(const SiteFrame& frame) {
  std::string file = frame.file.value_or("?");
  file = file.substr(file.rfind('/') + 1);
  std::string text = file;
  if (frame.line) text += ':' + std::to_string(*frame.line);
  constexpr size_t kMost = 60;
  if (frame.text && !frame.text->empty() && frame.text->size() <= kMost) {
    text += " (" + *frame.text + ')';
  }
  return text;
}

}  // namespace

std::string bounded_advice(const Verdict& verdict, const std::string& container) {
  return (container.empty() ? std::string("What keeps it") : container) +
         " has a bound and is not full yet: nothing to do, if what " +
         (verdict.site ? short_place(*verdict.site) : "native code") +
         " allocates fits into memory that many times.";
}

std::string leak_advice(const Verdict& verdict, Shape shape, const std::string& container) {
  const std::string site = verdict.site ? short_place(*verdict.site) : "native code";
  const std::string each = verdict.bytes_per_second ? "now and then" : "each step";
  if (shape == Shape::kGrowingBlock) {
    return "The block made at " + site +
           " is replaced by a larger one each time: write into a buffer of fixed size, or drop the "
           "old rows.";
  }
  if (verdict.cause == "cycle") {
    return "Break the reference cycle that keeps what " + site +
           " allocates, or call gc.collect() " + each + '.';
  }
  if (verdict.cause == "unbounded_cache") {
    return "Bound the cache" + (container.empty() ? std::string() : " " + container) +
           " that keeps what " + site + " allocates, or clear it " + each + '.';
  }
  if (verdict.cause == "host_leak" || verdict.cause == "pinned") {
    return "Find what keeps the native memory that " + site +
           " allocates: nothing frees it as the steps go by.";
  }
  if (verdict.kept_at) {
    const std::string name = container.empty() ? "the container" : container;
    return "At " + short_place(*verdict.kept_at) +
           " store a detached number (x.item()) or a copy on the CPU, bound " + name +
           ", or clear " + name + ' ' + each + '.';
  }
  if (!container.empty()) {
    return "What " + site + " allocates is kept by " + container + ": bound it, or clear it " +
           each + '.';
  }
  return "What " + site +
         " allocates is never freed: look for the list, dict, attribute or closure that keeps it, "
         "and store a detached number, bound it or clear it " +
         each + '.';
}

}  // namespace memscope
