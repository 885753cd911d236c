// What is derived from one pool (orders, colours, the sites' histories, sorted tables): made when
// first asked for, by whoever asks first, and kept beside the pool.
//
// One thing being made keeps only those waiting who want the same. Where the pool's index lies in
// the cache, what was kept there the last time is taken instead, and `keep()` puts there what was
// made since.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "view/block_order.h"
#include "view/colouring.h"
#include "view/derived_file.h"
#include "view/input_index.h"
#include "view/rows.h"
#include "view/site_table.h"

namespace memscope::view {

class PoolViews {
 public:
  // `directory`: of the index, "" where it is not in the cache.
  PoolViews(std::shared_ptr<const InputIndex> input, size_t pool,
            std::filesystem::path directory = {});

  const InputIndex& input() const { return *input_; }
  const PoolIndex& pool() const { return pool_; }
  const BlockOrder& order(OrderBy by) const;
  // Not for verdicts: they are the ViewState's.
  const Colouring& colouring(ColourBy by) const;
  std::shared_ptr<const SiteHistories> sites(uint32_t warmup) const;
  // The rows of a request, or those of the same request before.
  std::shared_ptr<const RowSet> rows(const std::string& request,
                                     const std::function<RowSet()>& make) const;
  // A whole answer, likewise. One `to_keep` (a picture of the whole run) is there the next time,
  // too.
  std::shared_ptr<const std::string> answer(const std::string& request,
                                            const std::function<std::string()>& make,
                                            bool to_keep = false) const;

  // The index has come to the cache: from now on things can be kept there.
  void lies_in(std::filesystem::path directory) const;
  // Takes what was kept out of its files and reads in what pictures are made from, while nobody
  // asks yet.
  void warm() const;
  // Something was made that is worth keeping.
  bool unkept() const { return unkept_; }
  void keep() const;

 private:
  template <typename T>
  using Recent = std::list<std::pair<std::string, std::shared_ptr<const T>>>;
  template <typename T>
  struct Slot {
    std::mutex mutex;
    std::unique_ptr<T> made;  // stays where it is
    bool kept = false;
  };

  void keep_pictures(const DerivedFiles& files) const;
  void take_pictures() const;
  bool worth_keeping() const;
  DerivedFiles files() const;

  std::shared_ptr<const InputIndex> input_;
  size_t number_;
  const PoolIndex& pool_;
  mutable std::array<Slot<BlockOrder>, kOrderCount> orders_;
  mutable std::array<Slot<Colouring>, kColourCount> colourings_;
  mutable std::mutex sites_mutex_, rows_mutex_, answers_mutex_, directory_mutex_;
  mutable std::shared_ptr<const SiteHistories> sites_;
  mutable uint32_t sites_warmup_ = 0;
  mutable bool sites_kept_ = false;
  mutable Recent<RowSet> rows_;
  mutable Recent<std::string> answers_;
  mutable Recent<std::string> pictures_;  // of the answers, those that are kept
  mutable bool pictures_taken_ = false, pictures_kept_ = true;
  mutable std::filesystem::path directory_;
  mutable std::atomic<bool> unkept_ = false;
};

}  // namespace memscope::view
