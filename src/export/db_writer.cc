// HOT PATH: row().
#include "export/db_writer.h"

#include <system_error>
#include <utility>

namespace memscope {

Result<std::unique_ptr<DbWriter>> DbWriter::create(const std::filesystem::path& path,
                                                   const std::vector<std::filesystem::path>& inputs,
                                                   bool compat) {
  auto file = DraftFile::create(path, inputs);
  if (!file) return file.error();
  std::unique_ptr<DbWriter> writer(new DbWriter(std::move(file).value(), compat));
  if (writer->load_.error()) return *writer->load_.error();
  return writer;
}

DbWriter::DbWriter(DraftFile file, bool compat)
    : file_(std::move(file)),
      load_(file_.draft(), file_.path()),
      batches_{DbBatch(compat), DbBatch(compat)} {
  try {
    thread_ = std::thread([this] { store_batches(); });
  } catch (const std::system_error&) {
    // No more threads in this container: the caller's does all of it.
  }
}

DbWriter::~DbWriter() {
  end_thread();
}

void DbWriter::store_batches() {
  std::unique_lock lock(lock_);
  for (;;) {
    changed_.wait(lock, [this] { return stored_ != nullptr || ended_; });
    if (stored_ == nullptr) return;
    lock.unlock();
    load_.take(*stored_);
    lock.lock();
    stored_ = nullptr;
    changed_.notify_all();
  }
}

void DbWriter::hand_over() {
  if (!thread_.joinable()) {
    load_.take(filling());
    failed_ = load_.error().has_value();
    filling().clear();
    return;
  }
  std::unique_lock lock(lock_);
  changed_.wait(lock, [this] { return stored_ == nullptr; });
  failed_ = load_.error().has_value();
  stored_ = &filling();
  changed_.notify_all();
  lock.unlock();
  filling_ ^= 1u;
  filling().clear();
}

void DbWriter::end_thread() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(lock_);
    ended_ = true;
    changed_.notify_all();
  }
  thread_.join();  // what was handed over is stored
}

Result<void> DbWriter::finish() {
  if (!filling().empty()) hand_over();
  end_thread();
  load_.finish();
  if (load_.error()) return *load_.error();
  return file_.commit();
}

}  // namespace memscope
