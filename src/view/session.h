// The inputs a viewer shows: loads or builds their indices, has them judged, and follows those that
// are still being written.
//
// A ViewState is one consistent picture: queries hold one while they run, and a newer one takes its
// place for those that come later. What is derived from an index (orders, colours, sorted tables)
// is made when first asked for and kept beside it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "view/index_cache.h"
#include "view/input_index.h"
#include "view/input_loader.h"
#include "view/name_table.h"
#include "view/pool_views.h"

namespace memscope::view {

struct ViewState {
  uint64_t generation = 0;
  bool growing = false;
  uint64_t origin = 0;  // ns since the epoch, of the first input to begin
  std::vector<std::shared_ptr<const InputIndex>> inputs;
  struct Pool {
    size_t input = 0;
    std::shared_ptr<const PoolViews> views;
  };
  std::vector<Pool> pools;

  // The diagnosis, null where there is none (yet).
  nlohmann::ordered_json diagnosis;
  std::vector<std::vector<VerdictBlocks>> verdicts;  // by pool
  uint32_t warmup = 0;                               // the last step of it

  // From an input's clock to the session's.
  int64_t shift(size_t input) const { return static_cast<int64_t>(inputs[input]->origin - origin); }
  const Colouring& colouring(size_t pool, ColourBy by) const;

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Colouring>> verdict_colourings;  // by pool
};

struct SessionOptions {
  std::vector<std::string> paths;  // an input each
  IndexCache cache{std::filesystem::path()};
  // The text of `analyze --json` for the paths; may take long, runs in a thread of its own.
  std::function<Result<std::string>(const std::vector<std::string>&)> diagnose;
  // Where native frames get their names: a moment after the first picture, in `work`'s thread.
  SymbolOptions symbols;
};

class Session {
 public:
  explicit Session(SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();
  void stop();

  // Null until the first index is there.
  std::shared_ptr<const ViewState> state() const;
  struct Status {
    uint64_t generation = 0;
    std::string state = "building", diagnosis = "running", names = "running", error;
    double progress = -1;  // -1 unknown
    bool growing = false;
  };
  Status status() const;
  // Somebody asked: a growing input is followed only while somebody does.
  void watched() const;
  // Waits until the first state is there, or it failed.
  void wait_ready() const;
  void wait_diagnosed() const;
  void wait_named() const;

 private:
  void work();
  bool is_watched() const;
  void judge();
  nlohmann::ordered_json diagnose() const;
  bool load(bool again);
  void publish(const std::vector<LoadedInput>& loaded);
  void keep_views();
  void name_natives();
  void name_growing();
  std::string names_keys() const;
  std::vector<std::string> stamps() const;

  SessionOptions options_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::shared_ptr<const ViewState> state_;
  std::string error_, diagnosis_state_ = "running", names_state_ = "running";
  nlohmann::ordered_json diagnosis_;
  std::atomic<double> progress_ = -1;
  std::atomic<bool> stopping_ = false;
  mutable std::atomic<std::chrono::steady_clock::rep> watched_ = 0;
  uint64_t generation_ = 0;
  // Of the inputs that were loaded last; the directories are the worker's.
  std::vector<std::string> names_keys_;
  std::vector<std::filesystem::path> directories_;
  // Of a growing run: made beside the next index, and taken by the one after.
  std::vector<std::shared_ptr<const NameTable>> growing_names_;
  std::unique_ptr<NameMaker> growing_maker_;
  std::chrono::steady_clock::time_point named_{};
  std::atomic<bool> naming_ = false;
  std::thread worker_, judge_, namer_;
};

}  // namespace memscope::view
