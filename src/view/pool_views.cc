#include "view/pool_views.h"

namespace memscope::view {
namespace {

constexpr size_t kRecentRows = 4, kRecentAnswers = 8;
constexpr size_t kLargestKept = 16 << 20;     // bytes of an answer that is kept
constexpr uint32_t kMostWarmed = 20'000'000;  // events: more is left to who asks for it
constexpr size_t kPictures = 4, kLargestPicture = 2 << 20;
constexpr uint32_t kWorthKeeping = 200'000;  // events: fewer are done in a few ms

template <typename T>
std::shared_ptr<const T> look_up(
    std::list<std::pair<std::string, std::shared_ptr<const T>>>& recent, const std::string& key) {
  for (auto at = recent.begin(); at != recent.end(); ++at) {
    if (at->first != key) continue;
    recent.splice(recent.begin(), recent, at);
    return recent.front().second;
  }
  return nullptr;
}

}  // namespace

PoolViews::PoolViews(std::shared_ptr<const InputIndex> input, size_t pool,
                     std::filesystem::path directory)
    : input_(std::move(input)),
      number_(pool),
      pool_(*input_->pools[pool]),
      directory_(std::move(directory)) {}

bool PoolViews::worth_keeping() const {
  return pool_.events() >= kWorthKeeping;
}

DerivedFiles PoolViews::files() const {
  if (!worth_keeping()) return {};
  const std::scoped_lock lock(directory_mutex_);
  return {directory_, number_};
}

const BlockOrder& PoolViews::order(OrderBy by) const {
  auto& slot = orders_[static_cast<size_t>(by)];
  const std::scoped_lock lock(slot.mutex);
  if (slot.made == nullptr) {
    slot.made = load_order(files(), pool_, by);
    slot.kept = slot.made != nullptr || by == OrderBy::kAlloc;
  }
  if (slot.made == nullptr) {
    slot.made = std::make_unique<BlockOrder>(*input_, pool_, by);
    if (!slot.kept) unkept_ = true;
  }
  return *slot.made;
}

const Colouring& PoolViews::colouring(ColourBy by) const {
  auto& slot = colourings_[static_cast<size_t>(by)];
  const std::scoped_lock lock(slot.mutex);
  if (slot.made == nullptr) {
    slot.made = load_colouring(files(), pool_, by);
    slot.kept = slot.made != nullptr;
  }
  if (slot.made == nullptr) {
    slot.made = std::make_unique<Colouring>(*input_, pool_, by, std::vector<VerdictBlocks>());
    unkept_ = true;
  }
  return *slot.made;
}

std::shared_ptr<const SiteHistories> PoolViews::sites(uint32_t warmup) const {
  const std::scoped_lock lock(sites_mutex_);
  // The warm-up may become known after the first question; answers being given keep what they hold.
  if (sites_ != nullptr && sites_warmup_ == warmup) return sites_;
  sites_warmup_ = warmup;
  sites_ = load_sites(files(), *input_, warmup);
  sites_kept_ = sites_ != nullptr;
  if (sites_ == nullptr) {
    sites_ = std::make_shared<const SiteHistories>(site_histories(*input_, pool_, warmup));
    unkept_ = true;
  }
  return sites_;
}

std::shared_ptr<const RowSet> PoolViews::rows(const std::string& request,
                                              const std::function<RowSet()>& make) const {
  const std::scoped_lock lock(rows_mutex_);
  if (auto known = look_up(rows_, request)) return known;
  auto made = std::make_shared<const RowSet>(make());
  rows_.emplace_front(request, made);
  if (rows_.size() > kRecentRows) rows_.pop_back();
  return made;
}

std::shared_ptr<const std::string> PoolViews::answer(const std::string& request,
                                                     const std::function<std::string()>& make,
                                                     bool to_keep) const {
  {
    const std::scoped_lock lock(answers_mutex_);
    if (auto known = look_up(answers_, request)) return known;
    if (to_keep) take_pictures();
    if (auto known = look_up(pictures_, request)) return known;
  }
  auto made = std::make_shared<const std::string>(make());
  if (made->size() > kLargestKept) return made;
  const std::scoped_lock lock(answers_mutex_);
  answers_.emplace_front(request, made);
  if (answers_.size() > kRecentAnswers) answers_.pop_back();
  if (to_keep && worth_keeping() && made->size() <= kLargestPicture) {
    pictures_.emplace_front(request, made);
    if (pictures_.size() > kPictures) pictures_.pop_back();
    pictures_kept_ = false;
    unkept_ = true;
  }
  return made;
}

// Once, when the first is asked for; the lock is held.
void PoolViews::take_pictures() const {
  if (pictures_taken_) return;
  pictures_taken_ = true;
  for (auto& [request, picture] : load_pictures(files(), kPictures)) {
    pictures_.emplace_back(request, std::make_shared<const std::string>(std::move(picture)));
  }
}

void PoolViews::keep_pictures(const DerivedFiles& files) const {
  Pictures kept;
  {
    const std::scoped_lock lock(answers_mutex_);
    if (pictures_kept_) return;
    pictures_kept_ = true;
    for (const auto& [request, picture] : pictures_) kept.emplace_back(request, *picture);
  }
  save_pictures(files, kept);
}

void PoolViews::lies_in(std::filesystem::path directory) const {
  const std::scoped_lock lock(directory_mutex_);
  directory_ = std::move(directory);
}

void PoolViews::warm() const {
  if (!worth_keeping() || pool_.events() > kMostWarmed) return;
  pool_.event.touch(), pool_.free_event.touch(), pool_.alloc_event.touch(), pool_.sized.touch();
  pool_.time.touch(), pool_.groups.touch();
  const DerivedFiles files = this->files();
  const auto take = [](auto& slot, auto load) {
    const std::scoped_lock lock(slot.mutex);
    if (slot.made != nullptr) return;
    slot.made = load();
    slot.kept = slot.made != nullptr;
  };
  take(colourings_[static_cast<size_t>(ColourBy::kSite)],
       [&] { return load_colouring(files, pool_, ColourBy::kSite); });
  take(orders_[static_cast<size_t>(OrderBy::kLifetime)],
       [&] { return load_order(files, pool_, OrderBy::kLifetime); });
  const std::scoped_lock lock(answers_mutex_);
  take_pictures();
}

void PoolViews::keep() const {
  unkept_ = false;
  const DerivedFiles files = this->files();
  if (!files.any()) return;
  // Written without the lock: what is made is not made again, and stays where it is.
  const auto write = [](auto& slot, const auto& save) {
    std::unique_lock lock(slot.mutex);
    if (slot.made == nullptr || slot.kept) return;
    slot.kept = true;
    const auto& made = *slot.made;
    lock.unlock();
    save(made);
  };
  for (size_t by = 0; by < kOrderCount; ++by) {
    write(orders_[by],
          [&](const BlockOrder& order) { save_order(files, order, static_cast<OrderBy>(by)); });
  }
  for (size_t by = 0; by < kColourCount; ++by) {
    write(colourings_[by], [&](const Colouring& colouring) {
      save_colouring(files, colouring, static_cast<ColourBy>(by));
    });
  }
  keep_pictures(files);
  std::unique_lock lock(sites_mutex_);
  if (sites_ == nullptr || sites_kept_) return;
  sites_kept_ = true;
  const auto sites = sites_;
  const uint32_t warmup = sites_warmup_;
  lock.unlock();
  save_sites(files, *sites, warmup);
}

}  // namespace memscope::view
