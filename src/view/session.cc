#include "view/session.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

namespace memscope::view {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kLook = std::chrono::milliseconds(300);  // how often a growing trace is looked at
constexpr auto kWatched = std::chrono::seconds(10);     // after the last question
constexpr int kBreath = 4;                              // a pause of that part of the reading
constexpr auto kKeep = std::chrono::milliseconds(500);
constexpr auto kName = std::chrono::seconds(5);   // new frames of a growing run are named, at most
constexpr auto kJudge = std::chrono::seconds(3);  // and judged anew, at most

std::string text_at(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// Sites of an input that are the frame of a verdict.
void add_sites(const InputIndex& input, const Json& frame, std::vector<uint32_t>& sites) {
  if (!frame.is_object()) return;
  const std::string file = text_at(frame, "file"), function = text_at(frame, "function");
  const auto line = frame.find("line");
  for (uint32_t site = 1; site < input.site_count(); ++site) {
    const SiteFrame& known = input.site(site);
    if (known.file.value_or("") != file || known.function != function) continue;
    if (line != frame.end() && line->is_number_integer() &&
        known.line.value_or(-1) != line->get<int64_t>()) {
      continue;
    }
    sites.push_back(site);
  }
}

// Puts a diagnosis beside the state it was made for, or a newer one.
std::shared_ptr<ViewState> with_diagnosis(const ViewState& from, Json diagnosis) {
  auto state = std::make_shared<ViewState>();
  state->generation = from.generation;
  state->growing = from.growing;
  state->origin = from.origin;
  state->inputs = from.inputs;
  state->pools = from.pools;
  state->verdicts.resize(state->pools.size());
  const auto steps = diagnosis.find("steps");
  if (steps != diagnosis.end() && steps->is_object()) {
    const auto until = steps->find("warmup_until");
    if (until != steps->end() && until->is_number_unsigned())
      state->warmup = until->get<uint32_t>();
  }
  const auto verdicts = diagnosis.find("verdicts"), inputs = diagnosis.find("inputs");
  if (verdicts != diagnosis.end() && verdicts->is_array() && inputs != diagnosis.end() &&
      inputs->is_array()) {
    for (size_t pool = 0; pool < state->pools.size(); ++pool) {
      const InputIndex& input = state->pools[pool].views->input();
      const Where where = state->pools[pool].views->pool().where;
      for (size_t number = 0; number < verdicts->size(); ++number) {
        const Json& verdict = (*verdicts)[number];
        // Null: it was found on more than one of them.
        const auto fits = [&verdict](const char* key, std::string_view name) {
          return !verdict.value(key, Json()).is_string() || text_at(verdict, key) == name;
        };
        if (!fits("layer", layer_name(where.layer)) || !fits("device", device_name(where.device))) {
          continue;
        }
        const auto processes = verdict.find("processes");
        bool here = false;
        for (const Json& process : processes != verdict.end() ? *processes : Json::array()) {
          here = here || (process.is_number_unsigned() && process.get<size_t>() < inputs->size() &&
                          text_at((*inputs)[process.get<size_t>()], "path") == input.facts.path);
        }
        if (!here) continue;
        VerdictBlocks blocks{.verdict = static_cast<int64_t>(number),
                             .name = text_at(verdict, "cause")};
        add_sites(input, verdict.value("site", Json()), blocks.sites);
        for (const Json& share : verdict.value("sites", Json::array())) {
          if (share.is_object()) add_sites(input, share.value("site", Json()), blocks.sites);
        }
        std::sort(blocks.sites.begin(), blocks.sites.end());
        blocks.sites.erase(std::unique(blocks.sites.begin(), blocks.sites.end()),
                           blocks.sites.end());
        if (blocks.sites.empty()) continue;  // accuses no blocks of this pool
        const auto first = verdict.find("first_step");
        if (first != verdict.end() && first->is_number_unsigned()) {
          blocks.first_step = first->get<uint32_t>();
        } else {
          blocks.first_step = state->warmup + 1;
        }
        state->verdicts[pool].push_back(std::move(blocks));
      }
    }
  }
  state->diagnosis = std::move(diagnosis);
  return state;
}

// Which of its input's pools a pool is.
size_t number_in_input(const ViewState& state, size_t pool) {
  size_t number = 0;
  while (number < pool && state.pools[pool - number - 1].input == state.pools[pool].input) ++number;
  return number;
}

}  // namespace

const Colouring& ViewState::colouring(size_t pool, ColourBy by) const {
  if (by != ColourBy::kVerdict) return pools[pool].views->colouring(by);
  const std::scoped_lock lock(mutex);
  verdict_colourings.resize(pools.size());
  auto& colouring = verdict_colourings[pool];
  if (colouring == nullptr) {
    const PoolViews& views = *pools[pool].views;
    colouring = std::make_unique<Colouring>(views.input(), views.pool(), by, verdicts[pool]);
  }
  return *colouring;
}

// -- the session ----------------------------------------------------------------------------------

Session::Session(SessionOptions options) : options_(std::move(options)) {}

Session::~Session() {
  stop();
}

void Session::start() {
  worker_ = std::thread([this] { work(); });
  judge_ = std::thread([this] { judge(); });
}

void Session::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
  if (judge_.joinable()) judge_.join();
  if (namer_.joinable()) namer_.join();
}

std::shared_ptr<const ViewState> Session::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

Session::Status Session::status() const {
  const std::scoped_lock lock(mutex_);
  Status status{.generation = generation_,
                .diagnosis = diagnosis_state_,
                .names = names_state_,
                .error = error_};
  status.progress = progress_;
  if (state_ != nullptr) {
    status.state = "ready";
    status.growing = state_->growing;
  } else if (!error_.empty()) {
    status.state = "failed";
  }
  return status;
}

void Session::wait_ready() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ != nullptr || !error_.empty() || stopping_; });
}

void Session::wait_diagnosed() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return diagnosis_state_ != "running" || stopping_; });
}

void Session::wait_named() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return names_state_ != "running" || !error_.empty() || stopping_; });
}

void Session::watched() const {
  watched_ = std::chrono::steady_clock::now().time_since_epoch().count();
}

bool Session::is_watched() const {
  const std::chrono::steady_clock::time_point last{
      std::chrono::steady_clock::duration(watched_.load())};
  return std::chrono::steady_clock::now() - last < kWatched;
}

// Sizes and times of the files that grow.
std::vector<std::string> Session::stamps() const {
  std::vector<std::string> stamps;
  for (const std::string& path : options_.paths) stamps.push_back(input_key(path));
  return stamps;
}

void Session::work() {
  std::vector<std::string> seen = stamps();
  if (!load(false)) return;
  for (int turns = 0; !stopping_;) {
    const auto state = this->state();
    if (!state->growing) {
      name_natives();
      return keep_views();
    }
    name_growing();
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLook, [&] { return stopping_.load(); });
    }
    if (!is_watched()) continue;
    std::vector<std::string> now = stamps();
    // The slab of a run is written through a mapping, which may leave the file's time as it is:
    // looked at all the same, once in a while.
    constexpr int kTurns = 3;
    if (now == seen && ++turns % kTurns != 0) continue;
    seen = std::move(now);
    const auto begin = std::chrono::steady_clock::now();
    load(true);
    // A breath for the program that is watched.
    const auto took = std::chrono::steady_clock::now() - begin;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, took / kBreath, [&] { return stopping_.load(); });
  }
}

// What was made for the pictures of a run that is over is kept for the next time, a moment later:
// whoever is looking comes first.
void Session::keep_views() {
  const auto state = this->state();
  if (!options_.cache.usable()) return;
  for (const ViewState::Pool& pool : state->pools) {
    if (!stopping_) pool.views->warm();
  }
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, kKeep, [&] { return stopping_.load(); });
    for (const ViewState::Pool& pool : state->pools) {
      if (stopping_ || !pool.views->unkept()) continue;
      lock.unlock();
      pool.views->keep();
      lock.lock();
    }
  }
}

bool Session::load(bool again) {
  std::vector<LoadedInput> loaded;
  std::string problem;
  for (size_t i = 0; i < options_.paths.size(); ++i) {
    LoadOptions options{.cache = again ? nullptr : &options_.cache};
    options.progress = [&](double share) {
      if (!again) {
        progress_ = (static_cast<double>(i) + share) / static_cast<double>(options_.paths.size());
      }
      return !stopping_.load();
    };
    auto found = load_inputs(options_.paths[i], options);
    if (!found) {
      if (problem.empty()) problem = found.error().message;
      continue;
    }
    for (LoadedInput& input : found.value()) {
      loaded.push_back(std::move(input));
    }
  }
  if (loaded.empty()) {
    if (!again) {
      const std::scoped_lock lock(mutex_);
      error_ = problem;
    }
    changed_.notify_all();
    return false;
  }
  progress_ = 1;
  {
    const std::scoped_lock lock(mutex_);
    growing_names_.resize(loaded.size());
    names_keys_.clear();
    for (size_t input = 0; input < loaded.size(); ++input) {
      names_keys_.push_back(loaded[input].names_key);
      if (again && growing_names_[input]) loaded[input].index->take_names(growing_names_[input]);
    }
  }
  publish(loaded);
  const auto state = this->state();
  directories_.clear();
  for (const LoadedInput& input : loaded) {
    const auto kept = keep_input(input, options_.cache);
    directories_.push_back(kept.empty() ? input.directory : kept);
    // What is derived before the names are there is derived of other sites.
    if (kept.empty() || !input.names_key.empty()) continue;
    for (const ViewState::Pool& pool : state->pools) {
      if (pool.input == directories_.size() - 1) pool.views->lies_in(kept);
    }
  }
  return true;
}

// -- names ----------------------------------------------------------------------------------------

// Of a run that is over: the state a second time, where any native frame has got a name.
void Session::name_natives() {
  const auto from = this->state();
  NameMaker maker(options_.symbols);
  std::vector<std::shared_ptr<const InputIndex>> inputs = from->inputs;
  std::vector<std::filesystem::path> directories(inputs.size());
  for (size_t i = 0; i < inputs.size() && !stopping_; ++i) {
    if (!lacks_names(*inputs[i], inputs[i]->frame_names())) continue;
    const auto names = maker.make(*inputs[i]);
    inputs[i] = inputs[i]->named(names);
    if (directories_[i].empty() || !maker.in_time()) continue;
    // Those of other object files are of no use any more.
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directories_[i], error)) {
      if (entry.is_directory(error)) std::filesystem::remove_all(entry.path(), error);
    }
    const auto directory = derived_directory(directories_[i], names_keys_[i]);
    std::filesystem::create_directory(directory, error);
    if (save_names(*names, directory / kNamesFile)) directories[i] = directory;
  }
  const std::scoped_lock lock(mutex_);
  names_state_ = "ready";
  if (inputs != from->inputs) {
    // A diagnosis may have come meanwhile.
    auto state = std::make_shared<ViewState>();
    state->generation = ++generation_;
    state->origin = state_->origin;
    state->inputs = inputs;
    for (size_t pool = 0; pool < state_->pools.size(); ++pool) {
      const size_t input = state_->pools[pool].input;
      state->pools.push_back(
          inputs[input] == from->inputs[input]
              ? state_->pools[pool]
              : ViewState::Pool{
                    input, std::make_shared<const PoolViews>(
                               inputs[input], number_in_input(*state_, pool), directories[input])});
    }
    state->verdicts.resize(state->pools.size());
    state_ = state_->diagnosis.is_object() ? with_diagnosis(*state, state_->diagnosis) : state;
  }
  changed_.notify_all();
}

// Of a growing one: beside the reading, for the index after. What is known stays known.
void Session::name_growing() {
  const auto now = std::chrono::steady_clock::now();
  if (naming_ || now - named_ < kName) return;
  const auto from = this->state();
  const bool lack = std::any_of(from->inputs.begin(), from->inputs.end(), [](const auto& input) {
    return lacks_names(*input, input->frame_names());
  });
  if (!lack) return;
  named_ = now;
  if (namer_.joinable()) namer_.join();
  if (!growing_maker_) growing_maker_ = std::make_unique<NameMaker>(options_.symbols);
  naming_ = true;
  namer_ = std::thread([this, from] {
    for (size_t i = 0; i < from->inputs.size() && !stopping_; ++i) {
      auto names = growing_maker_->make(*from->inputs[i]);
      const std::scoped_lock lock(mutex_);
      if (i < growing_names_.size()) growing_names_[i] = std::move(names);
    }
    naming_ = false;
  });
}

// What the names of all inputs depend on; waits for the first index.
std::string Session::names_keys() const {
  wait_ready();
  const std::scoped_lock lock(mutex_);
  std::string keys;
  for (const std::string& key : names_keys_) keys += key + ' ';
  return keys;
}

void Session::publish(const std::vector<LoadedInput>& loaded) {
  auto state = std::make_shared<ViewState>();
  for (const LoadedInput& input : loaded) state->inputs.push_back(input.index);
  state->origin = ~uint64_t{0};
  for (const auto& input : state->inputs) {
    state->origin = std::min(state->origin, input->origin);
    state->growing = state->growing || input->facts.ended == "running";
  }
  for (size_t input = 0; input < state->inputs.size(); ++input) {
    for (size_t pool = 0; pool < state->inputs[input]->pools.size(); ++pool) {
      const bool named =
          loaded[input].names_key.empty() || loaded[input].index->frame_names() != nullptr;
      state->pools.push_back(
          {input, std::make_shared<const PoolViews>(
                      state->inputs[input], pool,
                      named ? derived_directory(loaded[input].directory, loaded[input].names_key)
                            : std::filesystem::path())});
    }
  }
  state->verdicts.resize(state->pools.size());
  const std::scoped_lock lock(mutex_);
  state->generation = ++generation_;
  // The diagnosis of a moment ago holds until there is a newer one.
  if (state_ != nullptr) {
    if (state_->diagnosis.is_object()) state = with_diagnosis(*state, state_->diagnosis);
  }
  state_ = std::move(state);
  changed_.notify_all();
}

// Null where there is none. That of inputs which are complete is kept for the next time.
Json Session::diagnose() const {
  if (!options_.diagnose) return nullptr;
  std::string key = "diagnosis\n";
  for (const std::string& path : options_.paths) key += input_key(path);
  // Its first line: what the names in it depend on.
  if (auto text = options_.cache.find_text(key)) {
    const size_t line = std::min(text->find('\n'), text->size());
    Json known =
        Json::parse(text->begin() + static_cast<ptrdiff_t>(line), text->end(), nullptr, false);
    if (known.is_object() && text->substr(0, line) == names_keys()) return known;
  }
  const auto made = options_.diagnose(options_.paths);
  if (!made) return nullptr;
  Json diagnosis = Json::parse(made.value(), nullptr, false);
  if (!diagnosis.is_object()) return nullptr;
  const auto inputs = diagnosis.find("inputs");
  bool over = inputs != diagnosis.end() && inputs->is_array();
  for (const Json& input : over ? *inputs : Json::array()) {
    over = over && text_at(input, "ended") != "running";
  }
  if (over) options_.cache.keep_text(key, names_keys() + '\n' + made.value());
  return diagnosis;
}

void Session::judge() {
  while (!stopping_) {
    uint64_t generation = 0;
    {
      // Beside the first index, so that both are there at the same time.
      std::unique_lock lock(mutex_);
      generation = generation_;
    }
    Json diagnosis = diagnose();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ != nullptr || !error_.empty() || stopping_; });
    if (stopping_ || state_ == nullptr) {
      diagnosis_state_ = "failed";
      changed_.notify_all();
      return;
    }
    diagnosis_state_ = diagnosis.is_object() ? "ready" : "failed";
    if (diagnosis.is_object()) {
      const auto from = state_;
      lock.unlock();
      auto state = with_diagnosis(*from, std::move(diagnosis));
      lock.lock();
      // A newer state has come meanwhile: it is given this diagnosis, for the time being.
      if (state_ != from) {
        auto newer = with_diagnosis(*state_, std::move(state->diagnosis));
        state = std::move(newer);
      }
      state_ = std::move(state);
    }
    changed_.notify_all();
    if (!state_->growing) return;
    changed_.wait_for(lock, kJudge, [&] { return stopping_.load(); });
    changed_.wait(lock, [&] { return stopping_ || generation_ != generation; });
  }
}

}  // namespace memscope::view
