#include "symbols/symbolizer.h"

#include <algorithm>
#include <thread>

#include "symbols/answers.h"
#include "symbols/worker.h"

namespace memscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kMaxWorkers = 8;
// An object with more addresses is shared among workers: each reads its tables anew.
constexpr size_t kJobAddresses = 16384;
constexpr size_t kMaxAddresses = 4u << 20;
constexpr size_t kMaxTextBytes = size_t{256} << 20;

std::string plural(uint64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace

struct Symbolizer::Job {
  uint32_t object = 0;
  std::vector<uint64_t> offsets;
};

uint32_t Symbolizer::object(const ObjectFile& file) {
  const auto [at, fresh] =
      by_name_.emplace(file.path + '\0' + file.build_id, static_cast<uint32_t>(objects_.size()));
  if (fresh) objects_.push_back({.file = file});
  return at->second;
}

// The addresses not asked for before, an object's together, in the order of its first.
std::vector<Symbolizer::Job> Symbolizer::plan(std::span<const NativeAddress> addresses,
                                              unsigned workers) {
  std::vector<Job> jobs;
  tsl::robin_map<uint32_t, size_t> job_of;
  for (const auto [number, offset] : addresses) {
    Object& object = objects_[number];
    // "[vdso]" and code of a compiler in the process have no file.
    if (number == 0 || object.file.path.empty() || object.file.path.front() != '/') continue;
    if (answers_.size() > kMaxAddresses || !object.answers.emplace(offset, 0).second) continue;
    const auto [at, fresh] = job_of.emplace(number, jobs.size());
    if (fresh) jobs.push_back({.object = number});
    jobs[at->second].offsets.push_back(offset);
  }
  std::vector<Job> parts;
  for (Job& job : jobs) {
    std::sort(job.offsets.begin(), job.offsets.end());
    const size_t count = std::clamp<size_t>(job.offsets.size() / kJobAddresses, 1, workers);
    for (size_t i = 0; i < count; ++i) {
      const auto edge = [&](size_t part) {
        return job.offsets.begin() + static_cast<ptrdiff_t>(job.offsets.size() * part / count);
      };
      parts.push_back({job.object, {edge(i), edge(i + 1)}});
    }
  }
  return parts;
}

bool Symbolizer::take(Object& object, std::span<const uint64_t> offsets, const std::string& bytes) {
  size_t text_bytes = 0;
  const auto text = [&](std::string_view piece) {
    text_bytes += piece.size();
    return text_bytes > kMaxTextBytes ? std::string_view() : strings_.text(strings_.intern(piece));
  };
  AnswerReader reader;
  reader.answer = [&](uint32_t index, std::span<const AnswerReader::Line> lines) {
    if (index >= offsets.size()) return;
    uint32_t& answer = object.answers[offsets[index]];
    if (answer != 0) return;
    answer = static_cast<uint32_t>(answers_.size());
    answers_.push_back(
        {static_cast<uint32_t>(frames_.size()), static_cast<uint32_t>(lines.size())});
    for (const auto& line : lines) {
      frames_.push_back({text(line.function), text(line.file), line.line, line.inlined});
    }
  };
  reader.status = [&](LookUpStatus status, std::string_view detail) {
    if (object.status == LookUpStatus::kDamaged) return;  // another part of it was
    object.status = status;
    object.detail = detail;
  };
  return reader.read(bytes);
}

void Symbolizer::resolve(std::span<const NativeAddress> addresses) {
  const Clock::time_point begin = Clock::now();
  const unsigned processors = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxWorkers);
  const unsigned workers = options_.workers != 0 ? options_.workers : processors;
  const std::vector<Job> jobs = plan(addresses, workers);
  if (jobs.empty()) return;
  const WorkerLimits limits{.at_once = workers,
                            .memory = options_.worker_memory,
                            .deadline = begin + options_.budget - used_};
  run_workers(
      jobs.size(), limits,
      [&](size_t index, int fd) {
        AnswerWriter writer(fd);
        look_up(objects_[jobs[index].object].file, options_, jobs[index].offsets, writer);
        writer.end();
      },
      [&](size_t index, const std::string& bytes, WorkerEnd end) {
        const Job& job = jobs[index];
        Object& object = objects_[job.object];
        const size_t before = answers_.size();
        const bool whole = take(object, job.offsets, bytes);
        if (!whole && end != WorkerEnd::kNoTime) object.status = LookUpStatus::kDamaged;
        if (!whole && end == WorkerEnd::kNoTime) {
          late_ += job.offsets.size() - (answers_.size() - before);
        }
        if (object.status == LookUpStatus::kDamaged && object.detail.empty()) {
          object.detail = object.file.path;
        }
      });
  used_ += Clock::now() - begin;
}

std::span<const SourceFrame> Symbolizer::find(NativeAddress address) const {
  const Object& object = objects_[address.object];
  const auto found = object.answers.find(address.offset);
  if (found == object.answers.end()) return {};
  const Answer& answer = answers_[found->second];
  return std::span(frames_).subspan(answer.first, answer.count);
}

std::vector<std::string> Symbolizer::notes() const {
  std::vector<std::string> notes;
  const auto note = [&](LookUpStatus status, const std::string& what) {
    uint64_t count = 0;
    std::string first;
    for (const Object& object : objects_) {
      if (object.status != status) continue;
      if (count++ == 0) first = object.detail.empty() ? object.file.path : object.detail;
    }
    if (count == 0) return;
    notes.push_back(first + (count == 1 ? "" : " and " + plural(count - 1, "other object")) + what);
  };
  const std::string shown = "; shown as object+0xoffset";
  note(LookUpStatus::kMismatch, ": not the build that was traced, so not used" + shown +
                                    ". Give the right one with --sysroot or --debug-path");
  note(LookUpStatus::kMissing,
       ": not on this machine" + shown + ". Give it with --sysroot or --debug-path");
  note(LookUpStatus::kUnknowable,
       ": has no build-id, so nothing tells whether the file is the one traced" + shown);
  note(LookUpStatus::kDamaged, ": damaged, its symbols cannot all be read");
  if (late_ != 0) {
    const auto seconds = std::chrono::duration<double>(options_.budget).count();
    std::string limit = std::to_string(seconds);
    limit.erase(limit.find_last_not_of('0') + 1);
    if (limit.back() == '.') limit.pop_back();
    notes.push_back(plural(late_, "address") + " not looked up within " + limit + " s" + shown);
  }
  return notes;
}

}  // namespace memscope
