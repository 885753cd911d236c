// The one table that defines every record of a trace. Writer, reader, round-trip test and
// docs/trace-format.md are all made from it.
//
// A record is a run of 64-bit little-endian words. Its first word is stored last, so a zero first
// word means "nothing committed here yet": that is how a killed process's slab is read.
//
//   hot kinds (1..15): the layout is fixed for a major version
//
//      63            32 31             8 7      0
//     +----------------+----------------+--------+
//     |   dt: ticks    |   stack / arg  |  kind  |   word 0
//     +----------------+----------------+--------+
//     |  the kind's own words, see the table     |
//     +------------------------------------------+
//
//   cold kinds (16..127): carry their length, so a reader skips kinds it does not know
//
//      63            32 31             8 7      0
//     +----------------+----------------+--------+
//     |   dt: ticks    | words in all   |  kind  |   word 0
//     +----------------+----------------+--------+
//     |  fields in the table's order             |   u64, i64, f64: one word each
//     |                                          |   str: a word with its length in bytes, then
//     +------------------------------------------+   the bytes, zero-padded to whole words
//
// dt counts ticks since the record before it in the same slot (the slot's base for the first one).
// A larger gap is bridged by a `time` record. Fields may be appended to a cold kind in a minor
// version; a reader takes missing fields as 0 or "".
#pragma once

#include <cstdint>

namespace memscope {

// X(NAME, number, comment, FIELDS...) with F(type, field name, comment); types: u64 i64 f64 str.
// Hot records name the meaning of the 24-bit argument in their comment; `sized` is
// size (low 48 bits) | Where::packed() << 48.
// clang-format off
#define MEMSCOPE_HOT_RECORDS(X, F)                                                                \
  X(Alloc, 1, "a block was handed out; arg = stack node",                                         \
    F(u64, addr, "address") F(u64, sized, "size and where"))                                      \
  X(Free, 2, "a block is about to be freed; arg = where",                                         \
    F(u64, addr, "address"))                                                                      \
  X(PoolAlloc, 3, "as alloc, with the pool's totals after it; arg = stack node",                  \
    F(u64, addr, "address") F(u64, sized, "size and where")                                       \
    F(u64, allocated, "bytes handed out by the pool")                                             \
    F(u64, reserved, "bytes held by the pool"))                                                   \
  X(PoolFree, 4, "as free, with the pool's totals after it; arg = where",                         \
    F(u64, addr, "address") F(u64, allocated, "bytes handed out")                                 \
    F(u64, reserved, "bytes held"))                                                               \
  X(Time, 5, "advances the slot's clock; arg and dt unused",                                      \
    F(u64, ticks, "absolute ticks"))

#define MEMSCOPE_COLD_RECORDS(X, F)                                                               \
  /* -- definitions, in the lane's own numbering; `lane` starts a new numbering -- */             \
  X(Lane, 16, "the lane changes hands, or forgets its tables: ids start again from 1",            \
    F(u64, tid, "kernel thread id") F(str, thread_name, "comm")                                   \
    F(u64, keeps_ids, "1 = only the owner is another, the numbering goes on"))                \
  X(String, 17, "defines a string",                                                               \
    F(u64, id, "1, 2, ...") F(str, text, "bytes, UTF-8"))                                         \
  X(Frame, 18, "defines a frame",                                                                 \
    F(u64, id, "1, 2, ...") F(u64, kind, "FrameKind") F(u64, file, "string id")                   \
    F(u64, function, "string id") F(u64, line, "1-based, 0 unknown") F(u64, end_line, "")         \
    F(u64, first_line, "of the definition") F(u64, module, "string id; build-id for native")      \
    F(u64, offset, "of the native call: return address - 1 - load bias; 0 for Python"))           \
  X(Stack, 19, "defines a stack node",                                                            \
    F(u64, id, "1, 2, ...") F(u64, parent, "the caller's node, 0 = outermost")                    \
    F(u64, frame, "frame id"))                                                                    \
  /* -- the process and the run -- */                                                             \
  X(Process, 20, "who is traced; written once, first",                                            \
    F(u64, pid, "") F(u64, parent_pid, "of a traced parent, 0 none")                              \
    F(str, parent_trace, "dir") F(u64, parent_ticks, "the parent's clock at the fork")            \
    F(str, host, "") F(str, argv0, "") F(str, command, "argv, space-joined, for people")          \
    F(i64, rank, "-1 none") F(str, agent, "version") F(str, python, "version, \"\" none")         \
    F(u64, start_real_ns, "process start, epoch ns"))                                             \
  X(Anchor, 21, "ties the tick counter to two clocks",                                            \
    F(u64, ticks, "") F(u64, mono_ns, "CLOCK_MONOTONIC") F(u64, real_ns, "CLOCK_REALTIME"))       \
  X(Window, 22, "recording begins or ends",                                                       \
    F(u64, action, "1 start, 2 stop, 3 shutdown, 4 exit") F(u64, ticks, "when"))                  \
  X(Seed, 23, "alive when recording began",                                                       \
    F(u64, addr, "") F(u64, sized, "size and where")                                              \
    F(u64, birth, "ticks of its alloc; 0 = alive before the hooks came (preexisting)")            \
    F(u64, window_ticks, "of the window it opens"))                                               \
  X(Gap, 24, "events may be missing between two times",                                           \
    F(u64, from_ticks, "") F(u64, to_ticks, "") F(str, reason, "")                                \
    F(u64, healed, "1 = what was freed meanwhile is known"))                                      \
  X(Drop, 25, "events that found no slot",                                                        \
    F(u64, kind, "record kind") F(u64, stack, "node or 0") F(u64, count, "") F(u64, bytes, ""))   \
  X(Notice, 26, "something is switched off or limited",                                           \
    F(str, what, "") F(str, why, ""))                                                             \
  X(Config, 27, "a setting in force",                                                             \
    F(str, key, "") F(str, value, ""))                                                            \
  X(Source, 28, "a source file as first read",                                                    \
    F(str, path, "") F(str, text, "")                                                             \
    F(u64, flags, "1 newer than the process, 2 statements only, 4 truncated"))                    \
  X(Module, 29, "a loaded object",                                                                \
    F(str, path, "") F(str, build_id, "hex") F(u64, base, "") F(u64, size, "bytes mapped")        \
    F(u64, mtime_ns, "") F(str, action, "load or unload"))                                        \
  X(Child, 30, "a child process was seen",                                                        \
    F(u64, pid, "") F(str, how, "fork, spawn, exec")                                              \
    F(str, traced, "its trace, or why there is none"))                                            \
  X(OtherAttr, 31, "by importers: what else a row said, before the event that it gave",           \
    F(u64, addr, "of the event's block, 0 none") F(str, attr, "JSON: an object of texts"))        \
  /* -- what the program does -- */                                                               \
  X(Step, 32, "boundary k ends step k",                                                           \
    F(u64, source, "StepSource") F(u64, index, "k, 1, 2, ...")                                    \
    F(u64, optimizer, "serial of the optimizer, 0 none") F(str, name, "its class"))               \
  X(Phase, 33, "a phase begins",                                                                  \
    F(u64, phase, "0 other 1 forward 2 backward 3 optimizer") F(str, module, "module path"))      \
  X(Owner, 34, "what a block is for",                                                             \
    F(u64, addr, "") F(u64, birth, "ticks, 0 = the live one")                                     \
    F(str, owner, "levels joined by @") F(str, label, "the user's") F(u64, offset, "of a view")   \
    F(u64, size, "of a view"))                                                                    \
  X(Mark, 35, "a mark or a range",                                                                \
    F(u64, action, "0 mark 1 begin 2 end") F(u64, range, "id") F(str, text, "")                   \
    F(str, domain, "") F(u64, stream, ""))                                                        \
  X(Counter, 36, "a sampled value",                                                               \
    F(str, name, "rss, cgroup.current, ...") F(u64, where, "Where::packed") F(i64, value, ""))    \
  X(Segment, 37, "a pool takes from or returns to its driver",                                    \
    F(u64, action, "0 alloc 1 free 2 map 3 unmap 4 was there") F(u64, addr, "")                               \
    F(u64, sized, "size, where") F(u64, stream, "")                                               \
    F(u64, pool, "private pool, 0 the default"))                                                  \
  X(PoolSnapshot, 38, "a pool's state",                                                           \
    F(u64, where, "Where::packed") F(u64, allocated, "") F(u64, reserved, "")                     \
    F(u64, active, "") F(u64, requested, "") F(str, detail, "JSON"))                              \
  X(Oom, 39, "an allocation failed",                                                              \
    F(u64, where, "Where::packed") F(u64, size, "asked for") F(u64, allocated, "")                \
    F(u64, reserved, "") F(u64, stack, "node"))                                                   \
  X(Undo, 40, "the free just recorded did not happen",                                            \
    F(u64, addr, "") F(u64, where, "packed"))                                                     \
  X(Access, 41, "a block was read or written",                                                    \
    F(u64, addr, "") F(u64, size, "") F(u64, mode, "1 read 2 write") F(str, op, ""))              \
  X(Launch, 42, "an operator or kernel starts or ends",                                           \
    F(u64, action, "0 start 1 end") F(u64, level, "0 op 1 kernel") F(str, name, "")               \
    F(u64, stream, "") F(u64, id, ""))                                                            \
  X(PythonTrace, 43, "a Python function's span",                                                  \
    F(str, name, "") F(u64, start_ticks, "") F(u64, end_ticks, ""))                               \
  X(OtherRow, 44, "by importers: a row of a dump that no other kind has a place for",             \
    F(str, event, "its columns, \"\" none") F(str, type, "") F(str, name, "") F(str, ptr, "")       \
    F(str, attr, "JSON: an object of texts"))                                                     \
  /* -- what the object walk finds -- */                                                          \
  X(Holder, 48, "who keeps a block alive",                                                        \
    F(u64, addr, "") F(u64, birth, "ticks, 0 = live one")                                         \
    F(str, root, "module frame thread class traceback closure hook autograd c++")                 \
    F(str, path, "JSON: [{kind,name,type,len}]") F(str, file, "of the storing statement")         \
    F(u64, line, "0 unknown") F(u64, end_line, "") F(str, function, "")                           \
    F(str, text, "readable")                                                                      \
    F(str, cause, "\"\" or a cause of the contract that the walk proves"))                        \
  X(Census, 49, "Python objects by type",                                                         \
    F(str, type, "qualified") F(u64, count, "") F(u64, bytes, "shallow"))                         \
  X(Smaps, 50, "what RSS is made of",                                                             \
    F(str, group, "") F(u64, rss, "") F(u64, pss, "") F(u64, anonymous, "") F(u64, swap, ""))     \
  /* -- the past, folded; all but its steps at the time where it ends, in this order -- */        \
  X(Folded, 52, "events up to this time were folded: a summary, then what is kept of them",       \
    F(u64, from_ticks, "of the first event") F(u64, to_ticks, "the last tick that is folded")     \
    F(u64, steps, "that ended before") F(u64, source, "StepsFrom")                                \
    F(u64, optimizer, "serial, where the source is one")                                          \
    F(u64, width_ns, "of a window, where the source is time")                                     \
    F(u64, events, "allocs, frees and seeds") F(u64, preexisting, "of the seeds")                 \
    F(u64, ambiguous, "") F(u64, unknown_frees, "") F(u64, folds, "how often was folded")         \
    F(u64, log_bytes, "that the folded records took, compressed"))                                \
  X(FoldedStep, 53, "the end of a bucket of steps; 0: step 1 begins",                             \
    F(u64, step, "the bucket's last one")                                                         \
    F(u64, optimizer, "not 0: the last step of an optimizer whose steps are not counted")         \
    F(u64, count, "of that one's steps"))                                                         \
  X(Fold, 51, "a point of a stack's curve: what was alive at a bucket's end",                     \
    F(u64, stack, "node") F(u64, where, "packed") F(u64, to_step, "the bucket's last step")       \
    F(u64, live_bytes, "at to_step") F(u64, live_blocks, "at to_step")                            \
    F(u64, allocs, "in all, on the stack's last point") F(u64, seeded, "1 = of unknown stacks")   \
    F(u64, changed, "1 = in the open step, on the last point")                                    \
    F(u64, noise, "of live_bytes, KiB^2, where they are sampled")                                 \
    F(f64, stands_for, "blocks that the recorded allocs stand for, on the last point"))                                   \
  X(FoldedBlock, 54, "alive where the folded past ends",                                          \
    F(u64, addr, "") F(u64, sized, "size and where") F(u64, birth, "ticks, 0 = preexisting")      \
    F(u64, stack, "node") F(u64, step, "in which it was born")                                    \
    F(u64, flags, "1 fate unknown, 2 of an unknown stack")                                        \
    F(u64, sampled_size, "bytes as recorded, where `sized` is what a sampled block stands for"))                                       \
  X(FoldedPool, 55, "a pool in a bucket of steps",                                                \
    F(u64, where, "packed") F(u64, to_step, "the bucket's last step")                             \
    F(u64, min, "allocated, in the bucket") F(u64, max, "") F(u64, end, "at to_step")             \
    F(u64, reserved_end, "at to_step"))                                                           \
  X(FoldedLevel, 56, "a pool where the folded past ends",                                         \
    F(u64, where, "packed") F(u64, has_totals, "1 = it told its totals itself")                   \
    F(u64, start, "allocated") F(u64, peak, "") F(u64, now, "") F(u64, reserved_start, "")        \
    F(u64, reserved_peak, "") F(u64, reserved_now, "") F(u64, step_min, "in the open step")       \
    F(u64, step_max, "in the open step") F(u64, least_step, "with the least share left, 0 none")  \
    F(f64, least_ratio, "") F(u64, least_bytes, "") F(u64, most_step, "with the most, 0 none")    \
    F(f64, most_ratio, "") F(u64, most_bytes, "")                                                 \
    F(u64, peak_noise, "of the peak, KiB^2, where it is sampled"))
// clang-format on

enum class Kind : uint8_t {
  kNone = 0,
#define MEMSCOPE_NO_FIELD(type, name, comment)
#define MEMSCOPE_ENUMERATOR(name, number, ...) k##name = number,
  MEMSCOPE_HOT_RECORDS(MEMSCOPE_ENUMERATOR, MEMSCOPE_NO_FIELD)
      MEMSCOPE_COLD_RECORDS(MEMSCOPE_ENUMERATOR, MEMSCOPE_NO_FIELD)
#undef MEMSCOPE_ENUMERATOR
#undef MEMSCOPE_NO_FIELD
};

inline constexpr uint8_t kFirstColdKind = 16;
inline constexpr uint8_t kKindLimit = 128;  // a larger first byte is damage
inline constexpr int kFormatMajor = 1;
inline constexpr int kFormatMinor = 0;

// What a Window record says of the recording.
enum class WindowAction : uint64_t { kStart = 1, kStop = 2, kShutdown = 3, kExit = 4 };

// FoldedBlock's flags.
inline constexpr uint64_t kFoldedFateUnknown = 1, kFoldedSeeded = 2;

// Where step boundaries come from, strongest first.
enum class StepSource : uint8_t { kApi = 1, kMstxStart = 2, kMstxEnd = 3, kOptimizer = 4 };

inline constexpr uint64_t kSizeMask = (uint64_t{1} << 48) - 1;
inline constexpr uint32_t kArgMask = (1u << 24) - 1;

constexpr uint64_t hot_word(Kind kind, uint32_t arg, uint32_t dt) {
  return uint64_t{dt} << 32 | uint64_t{arg & kArgMask} << 8 | static_cast<uint64_t>(kind);
}
constexpr uint64_t pack_sized(uint64_t size, uint16_t where) {
  return (size & kSizeMask) | uint64_t{where} << 48;
}
constexpr uint64_t sized_size(uint64_t sized) {
  return sized & kSizeMask;
}
constexpr uint16_t sized_where(uint64_t sized) {
  return static_cast<uint16_t>(sized >> 48);
}

// Words of a hot record, word 0 included; 0 for a kind that is not hot or not known.
constexpr int hot_words(uint8_t kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::kAlloc:
      return 3;
    case Kind::kFree:
      return 2;
    case Kind::kPoolAlloc:
      return 5;
    case Kind::kPoolFree:
      return 4;
    case Kind::kTime:
      return 2;
    default:
      return 0;
  }
}

}  // namespace memscope
