// One process of a csv or db as replay takes it: an EventSource, in time order.
//
// What rows do not say by themselves is made good here, where they are in order:
//  * A shadow FREE that no later recording follows is none: the block was alive at the end.
//  * A free that does not say in full where its block lay ends the block that has its address.
//  * Ranges are paired, thread by thread, the innermost first.
//  * A row that was written twice (a fork that took the original's buffer along) counts once.
//  * Of several windows of recording the first start and the last stop are told, and the pauses
//    between them as gaps: the rows themselves say what was freed meanwhile.
//
// Times are ns, and so are ticks. Memory: event_spool.h's reader; for files that need it 16 B a
// live block to find where frees belong.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "import/event_pass.h"
#include "import/event_spool.h"
#include "import/imported_file.h"
#include "replay/event_source.h"
#include "tsl/robin_map.h"

namespace memscope {

class ImportedEvents {
 public:
  ImportedEvents(std::shared_ptr<const ImportedFile> file, uint16_t part);

  size_t next_batch(std::span<Event> out);
  template <typename Visit>
  void scan(uint64_t kinds, Visit&& visit) const {
    scan_records(Pass(*file_, part_, SpoolReader::kRecords), kinds, visit);
  }
  TimeRange time_range() const { return {process().first, process().last}; }
  uint64_t time_of(uint64_t ticks) const { return ticks; }
  const StackTable& stacks() const { return file_->stacks.stacks(); }
  const StringTable& strings() const { return file_->stacks.strings(); }
  void rewind();

  const ImportedProcess& process() const { return file_->processes[part_]; }
  // Of what was delivered so far.
  uint64_t repeated() const { return pass_.repeated(); }
  bool damaged() const { return pass_.damaged(); }

 private:
  // Once through the events.
  class Pass {
   public:
    Pass(const ImportedFile& file, uint16_t part, SpoolReader::Which which)
        : process_(&file.processes[part]), reader_(file.spool, part, which) {}
    // `event.words` is valid until the next call.
    bool next(Event& event);
    uint64_t repeated() const { return repeated_; }
    bool damaged() const { return reader_.damaged(); }

   private:
    bool keep(const SpoolEntry& entry);
    bool is_pause(const SpoolEntry& entry);
    bool is_free(const SpoolEntry& entry) const;
    void resolve(const SpoolEntry& entry, Event& event);
    std::span<const uint64_t> paired(const SpoolEntry& entry, std::span<const uint64_t> words);

    const ImportedProcess* process_;
    SpoolReader reader_;
    SpoolEntry last_;
    uint64_t repeated_ = 0;
    bool started_ = false, stopped_ = false;
    tsl::robin_map<uint64_t, uint16_t> places_;  // of live blocks, by address and class
    struct Range {
      uint64_t number = 0;
      std::string text;
    };
    tsl::robin_map<uint32_t, std::vector<Range>> open_ranges_;  // by thread
    uint64_t ranges_ = 0;
    size_t window_ = 0;           // of the process's windows: those of the rows so far
    uint64_t paused_ = 0;         // when the last pause began
    std::vector<uint64_t> made_;  // a record that is not as its row had it
  };

  std::shared_ptr<const ImportedFile> file_;
  uint16_t part_;
  Pass pass_;
  std::vector<uint64_t> words_;  // of a batch
};
static_assert(EventSource<ImportedEvents>);

}  // namespace memscope
