// Writes a dump as SQLite: table memscope_dump, and python_trace_<pid> where there are calls, as
// msMemScope defines them and MindStudio Insight reads them.
//
//   rows --> batch A                     the caller's thread fills one
//            batch B --> DbLoad --> file     while a thread of the writer's stores the other
//
// HOT PATH: row().
#pragma once

#include <array>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "export/db_batch.h"
#include "export/db_load.h"
#include "export/draft_file.h"
#include "export/written_row.h"

namespace memscope {

class DbWriter final : public RowWriter {
 public:
  static Result<std::unique_ptr<DbWriter>> create(const std::filesystem::path& path,
                                                  const std::vector<std::filesystem::path>& inputs,
                                                  bool compat);
  ~DbWriter() override;

  void row(const WrittenRow& row) override {
    filling().add(row);
    if (filling().full()) [[unlikely]]
      hand_over();
  }
  void call(const WrittenCall& call) override {
    filling().add(call);
    if (filling().full()) hand_over();
  }
  bool failed() const override { return failed_; }
  Result<void> finish() override;

 private:
  DbWriter(DraftFile file, bool compat);
  DbBatch& filling() { return batches_[filling_]; }
  void hand_over();
  void store_batches();
  void end_thread();

  DraftFile file_;
  DbLoad load_;
  std::array<DbBatch, 2> batches_;
  size_t filling_ = 0;
  bool failed_ = false;  // as of the last hand-over

  // Between the two threads. While `stored_` is set it and `load_` are the other thread's.
  std::mutex lock_;
  std::condition_variable changed_;
  const DbBatch* stored_ = nullptr;
  bool ended_ = false;
  std::thread thread_;  // not running where the system has no thread for us
};

}  // namespace memscope
