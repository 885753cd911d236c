#include "analysis/advice.h"

#include <algorithm>
#include <vector>

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

// "grow()", "void Pool<int>::grow(...)" without its parameters
std::string call_of(const SiteFrame& frame) {
  constexpr size_t kMost = 60;
  const size_t bracket = frame.function.find('(');
  const std::string name = frame.function.substr(0, bracket == 0 ? std::string::npos : bracket);
  return name.size() > kMost ? name.substr(0, kMost) + "..." : name + "()";
}

bool has_native(const std::vector<SiteFrame>& stack) {
  return std::any_of(stack.begin(), stack.end(), [](const SiteFrame& f) { return f.native; });
}

// Memory that Python does not manage: who should free it?
std::string host_advice(const Verdict& verdict, const std::string& container,
                        const std::string& each) {
  if (!verdict.site) {
    return "No line of the program is on its stack: record native stacks (--call-stack=c:50) to "
           "see who allocates.";
  }
  const SiteFrame& site = *verdict.site;
  const std::string place = short_place(site);
  if (site.native && site.user) {
    return "Nothing frees what " + call_of(site) + (site.file ? " allocates at " + place : "") +
           (site.file ? "" : " allocates") + ": free it " + each +
           ", reuse one buffer, or find the path on which the pointer is lost.";
  }
  if (site.native) {
    const std::string object = site.module.value_or("?");
    return call_of(site) + " of " + object.substr(object.rfind('/') + 1) +
           " allocates it on nobody's behalf that is known: see the stack for who calls it, and "
           "close or reuse what is opened there.";
  }
  if (!container.empty()) {
    return "What " + place + " allocates is kept by " + container + ": bound it, or clear it " +
           each + '.';
  }
  return "What " + place +
         " allocates is never freed: look for the list, dict or buffer that keeps "
         "it, and for a native call that does not free it" +
         (has_native(verdict.stack) ? "." : " (--call-stack=c:50 shows its function).");
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
    return host_advice(verdict, container, each);
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
