// Events -> rows of msMemScope's dump, each into the files that have to have it.
//
//   alloc, free, seed            MALLOC, FREE (dump_blocks.h)      its device's file
//   recording begins, ends       SYSTEM START_TRACE, STOP_TRACE    every file, Device Id N/A
//   pause of the recording       likewise (an input that is a dump tells one as a gap)
//   end of a step                SYSTEM STEP                       every file, Device Id N/A
//   mark, range                  MSTX Mark, Range_start, _end      the device's; one that is not
//   known: operator, kernel             OP_LAUNCH, KERNEL_LAUNCH          every file, as of its
//   device, so block read or written        ACCESS                            that marks cut every
//   device's rows pool's state                 SNAPSHOT                          its device's file
//   failed allocation            OOM_DETAIL (and SNAPSHOT)         its device's file
//   call of a Python function    the Python trace                  every file
//   what a dump had beside       the row as it was                 its device's, or every file
//   use of device and process    process_used, device_used of      its device's file
//                                the memory rows after it
//
// Guarantees
//  * Rows come in time order, with IDs 1, 2, ... over all files; a row in several files has one ID.
//  * A MALLOC and its FREE have the same Ptr, Event Type, allocation_id and size.
//  * With steps A to B: the rows of those steps, after a START_TRACE and shadow MALLOCs of what was
//    alive when A began.
// HOT PATH: feed(), block_row().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/event.h"
#include "core/stacks.h"
#include "export/dump_blocks.h"
#include "export/dump_inefficient.h"
#include "export/dump_owners.h"
#include "export/dump_settings.h"
#include "export/dump_stacks.h"
#include "export/written_row.h"
#include "replay/steps.h"

namespace memscope {

// Whose events they are.
struct DumpProcess {
  uint64_t pid = 0;
  std::string identity;                      // of the process, see DumpFiles
  uint64_t dropped = 0, dropped_frees = 0;   // events that found no slot, and the frees among them
  std::function<uint64_t(ThreadId)> tid_of;  // 0 = not known: the main thread is taken
  std::function<uint64_t(uint64_t ticks)> time_of;  // of a record's field
  const StackTable* stacks = nullptr;
  const StringTable* strings = nullptr;
  StepPlan steps;
};

// "cpu", or the device's number.
std::string dump_device_id(Device device);
// HAL, PTA, HOST, ...
std::string_view dump_event_type(Layer layer, bool compat);

class DumpRows {
 public:
  // A device as a number below kDevices.
  static constexpr size_t kDevices = 1u << 12;
  static constexpr size_t device_bits(Device device) {
    return Where{Layer{}, device}.packed() & (kDevices - 1);
  }

  DumpRows(const DumpProcess& process, const DumpSettings& settings, const DumpOwners& owners,
           const DumpInefficient& inefficient);

  // Rows of `device` go to `file`. Events of a device without a file give no row. Without any
  // device the rows that have none go to `file` alone.
  void add_file(std::optional<Device> device, RowWriter& file);
  bool wants(Device device) const { return file_of_[device_bits(device)] != 0; }

  // False: no later event gives a row, or a file failed.
  bool feed(const Event& event);
  void finish();

  uint64_t rows_of(const RowWriter& writer) const;
  uint64_t calls() const { return calls_; }  // of Python functions
  uint64_t frees_left_out() const { return blocks_.frees_left_out(); }

 private:
  struct File {
    std::optional<Device> device;
    std::string id = "N/A";
    RowWriter* writer = nullptr;
    uint64_t rows = 0;
  };

  void begin_range(uint64_t time);
  void end_range(uint64_t time);
  void block_row(const BlockChange& change, const Event* event);
  void window_row(const Event& event);
  void step_row(const Event& event);
  void record_rows(const Event& event);
  void mark_row(const Event& event);
  void launch_row(const Event& event);
  void access_row(const Event& event);
  void snapshot_row(const Event& event);
  void oom_rows(const Event& event);
  void oom_list(std::string_view type, std::string_view name, const Event& event,
                std::vector<BlockChange>& blocks, size_t count);
  void python_call(const Event& event);
  void other_row(const Event& event);
  void pause(const Event& event);
  void resume(uint64_t time);
  void keep_counter(const Event& event);
  void keep_attrs(const Event& event);
  // The attributes that were kept for the event at hand.
  void other_attrs(uint64_t time, uint64_t addr = 0);
  void put_other_attrs();
  void use_attrs(Where where);
  void system_row(std::string_view type, std::string_view name, const Event& event);

  // The row's ID, process, thread and time.
  WrittenRow row_of(const Event& event, std::string_view name, std::string_view type);
  void attr(std::string_view key, std::string_view value, bool text = false);
  void attr(std::string_view key, uint64_t number);
  void put(WrittenRow& row, File& file, bool with_device);
  void to_device(WrittenRow& row, Device device);
  void to_every_file(WrittenRow& row, bool of_its_device);
  void to_device_of(WrittenRow& row, const Event& event);
  void set_stack(WrittenRow& row, StackId stack);

  static constexpr size_t kMaxAttrs = 32;

  const DumpProcess& process_;
  const DumpSettings& settings_;
  const DumpOwners& owners_;
  const DumpInefficient& inefficient_;
  DumpBlocks blocks_;
  DumpStacks stacks_;
  std::vector<File> files_;
  std::array<uint8_t, kDevices> file_of_{};  // + 1

  uint64_t from_ = 0, to_ = 0;  // rows of this time only, both included
  bool writing_ = false, ended_ = false;
  size_t next_step_ = 0;  // index into the plan's ends
  uint64_t last_time_ = 0, last_oom_ = 0;
  uint64_t dropped_ = 0;  // still to be told
  uint64_t resume_ = 0;   // when the pause ends that recording is in, 0 = in none

  // Bytes in use as last told, by device; empty where nobody told.
  struct InUse {
    std::optional<uint64_t> process, device;
  };
  std::vector<InUse> in_use_;

  // Of the event that comes next: what its row has beside.
  struct OtherAttrs {
    uint64_t time = 0, addr = 0;
    std::vector<std::pair<std::string, std::string>> pairs;
  };
  OtherAttrs other_;
  uint64_t last_id_ = 0, calls_ = 0;
  ThreadId last_thread_;
  uint64_t last_tid_ = 0;

  // Of the row that is being made.
  std::array<WrittenAttr, kMaxAttrs> attrs_;
  size_t attr_count_ = 0;
  std::array<char, kMaxAttrs * 24> digits_;
  char* digits_end_ = nullptr;
  std::array<char, 24> ptr_;
  std::string owner_, inefficient_types_;
};

}  // namespace memscope
