#include "view/index_file.h"

#include <fstream>
#include <iterator>

#include "view/table_io.h"

namespace memscope::view {
namespace {

constexpr const char* kTables = "tables";
constexpr uint64_t kMagic = 0x3178'646e'494d'534d;  // "MSMIndx1"

template <typename Io>
void where(Io& io, Where& place) {
  uint16_t packed = place.packed();
  io(packed);
  if constexpr (Io::kReads) place = Where::unpack(packed);
}

template <typename Io>
void facts(Io& io, InputFacts& f) {
  io(f.path), io(f.name), io(f.kind), io(f.ended), io(f.command), io(f.complete), io(f.dropped);
  io(f.part), io(f.parts);
  bool known = f.process.has_value();
  io(known);
  if (!known) return;
  if constexpr (Io::kReads) f.process.emplace();
  ProcessSeen& p = *f.process;
  io(p.host), io(p.argv0), io(p.agent), io(p.pid), io(p.rank);
}

template <typename Io>
void side(Io& io, SideRecords& side) {
  io_list(io, side.holders, [&](HolderSeen& h) {
    io(h.addr), io(h.birth), io(h.size), io(h.root), io(h.path), io(h.file), io(h.function);
    io(h.text), io(h.cause), io(h.line), io(h.end_line);
  });
  io_list(io, side.gaps, [&](GapSeen& g) { io(g.from), io(g.to), io(g.reason), io(g.healed); });
  io(side.dropped), io(side.left_out), io(side.ended);
  // Maps: by hand.
  uint64_t count = side.unnamed_modules.size();
  io(count);
  if constexpr (Io::kReads) {
    for (uint64_t i = 0; i < count && io.ok(); ++i) {
      std::string path;
      uint64_t changed = 0;
      io(path), io(changed);
      side.unnamed_modules.emplace(std::move(path), changed);
    }
  } else {
    for (auto& [path, changed] : side.unnamed_modules) io(path), io(changed);
  }
  count = side.sources.size();
  io(count);
  if constexpr (Io::kReads) {
    for (uint64_t i = 0; i < count && io.ok(); ++i) {
      std::string path;
      SourceText source;
      io(path), io(source.text), io(source.flags);
      side.sources.emplace(std::move(path), std::move(source));
    }
  } else {
    for (auto& [path, source] : side.sources) io(path), io(source.text), io(source.flags);
  }
}

template <typename Io>
void tables(Io& io, InputIndex& index) {
  facts(io, index.facts);
  io(index.origin), io(index.begin), io(index.end);
  io_list(io, index.threads, [&](ThreadEntry& t) { io(t.tid), io(t.name); });
  io_list(io, index.owners, [&](std::string& s) { io(s); });
  io_list(io, index.used_stacks, [&](uint32_t& s) { io(s); });
  io_list(io, index.names, [&](std::string& s) { io(s); });
  io(index.steps.from), io(index.steps.begin);
  io_list(io, index.steps.ends, [&](uint64_t& t) { io(t); });
  io_list(io, index.phases, [&](PhaseSeen& p) { io(p.time), io(p.phase), io(p.module); });
  io_list(io, index.marks, [&](MarkSeen& m) { io(m.begin), io(m.end), io(m.text), io(m.domain); });
  io_list(io, index.counters, [&](CounterSeen& c) {
    io(c.name), where(io, c.where);
    io_list(io, c.times, [&](uint64_t& t) { io(t); });
    io_list(io, c.values, [&](int64_t& v) { io(v); });
  });
  io_list(io, index.ooms, [&](OomSeen& o) {
    io(o.time), io(o.size), io(o.allocated), io(o.reserved), where(io, o.where), io(o.stack);
  });
  io_list(io, index.windows, [&](Span& w) { io(w.begin), io(w.end); });
  side(io, index.side);
  io_list(io, index.damage, [&](std::string& s) { io(s); });
  io(index.left_out), io(index.unknown_frees), io(index.ambiguous);
}

void write_stacks(TableWriter& io, const InputIndex& index) {
  io(uint64_t{index.strings.size()});
  for (uint32_t i = 0; i < index.strings.size(); ++i) {
    io(std::string(index.strings.text(StringId(i))));
  }
  io(uint64_t{index.stacks.size()});
  for (uint32_t i = 1; i < index.stacks.size(); ++i) {
    const Frame& frame = index.stacks.frame(index.stacks.innermost(StackId(i)));
    io(index.stacks.parent(StackId(i)).value);
    io(frame.file.value), io(frame.function.value), io(frame.module.value), io(frame.line);
    io(frame.end_line), io(frame.first_line), io(frame.kind), io(frame.offset);
  }
}

void read_stacks(TableReader& io, InputIndex& index) {
  uint64_t count = 0;
  io(count);
  for (uint64_t i = 0; i < count && io.ok(); ++i) {
    std::string text;
    io(text);
    index.strings.intern(text);
  }
  const auto string = [&](StringId& id) {
    io(id.value);
    if (id.value >= index.strings.size()) id = {};
  };
  io(count);
  for (uint64_t i = 1; i < count && io.ok(); ++i) {
    uint32_t parent = 0;
    Frame frame;
    io(parent);
    string(frame.file), string(frame.function), string(frame.module);
    io(frame.line), io(frame.end_line), io(frame.first_line), io(frame.kind), io(frame.offset);
    if (parent < i) index.stacks.intern(StackId(parent), index.stacks.intern_frame(frame));
  }
}

// Every number that is used as an index must be one.
bool sound(const InputIndex& index) {
  for (const auto& pool : index.pools) {
    const size_t events = pool->time.size(), blocks = pool->alloc_event.size();
    if (events != pool->event.size() || blocks == 0 || events > kMaxEvents || blocks > kMaxEvents ||
        pool->groups.size() != (events + kGroupEvents - 1) / kGroupEvents ||
        pool->reserved.states.size() != pool->reserved.values.size() ||
        pool->untracked.states.size() != pool->untracked.values.size() ||
        pool->access_time.size() != pool->access_block.size() ||
        pool->access_time.size() != pool->access_what.size()) {
      return false;
    }
    for (const size_t size :
         {pool->free_event.size(), pool->address.size(), pool->sized.size(), pool->stack.size(),
          pool->owner.size(), pool->thread.size(), pool->free_thread.size()}) {
      if (size != blocks) return false;
    }
  }
  const auto names = [&](uint32_t name) { return name < index.names.size(); };
  for (const PhaseSeen& phase : index.phases) {
    if (!names(phase.module)) return false;
  }
  for (const MarkSeen& mark : index.marks) {
    if (!names(mark.text) || !names(mark.domain)) return false;
  }
  for (const CounterSeen& counter : index.counters) {
    if (counter.times.size() != counter.values.size()) return false;
  }
  return !index.owners.empty() && !index.threads.empty();
}

std::string column_path(const std::filesystem::path& directory, size_t pool, const char* name) {
  return (directory / ("p" + std::to_string(pool) + "." + name)).string();
}

}  // namespace

bool save_index(const InputIndex& index, const std::string& key,
                const std::filesystem::path& directory) {
  bool whole = true;
  TableWriter io;
  io(kMagic), io(kIndexVersion), io(key);
  // Writing changes nothing: `tables` serves both ways.
  tables(io, const_cast<InputIndex&>(index));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  write_stacks(io, index);
  io(uint64_t{index.pools.size()});
  for (const auto& pool : index.pools) {
    io(pool->where.packed()), io(pool->live_bytes), io(pool->live_blocks);
    io(pool->peak.state), io(pool->peak.bytes);
    PoolIndex::for_each_column(*pool, [&](const char*, auto& column) {
      io(uint64_t{column.size()});
      if (!column.empty() && !column.in_file()) whole = false;
    });
  }
  if (!whole) return false;
  return write_whole(directory / kTables, io.bytes());
}

Result<std::unique_ptr<InputIndex>> load_index(const std::string& key,
                                               const std::filesystem::path& directory) {
  std::ifstream file(directory / kTables, std::ios::binary);
  if (!file) return Error{directory.string() + ": no index"};
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  TableReader io(bytes);
  uint64_t magic = 0;
  uint32_t version = 0;
  std::string known;
  io(magic), io(version), io(known);
  if (magic != kMagic || version != kIndexVersion || known != key) {
    return Error{directory.string() + ": an index of something else"};
  }
  auto index = std::make_unique<InputIndex>();
  tables(io, *index);
  read_stacks(io, *index);
  uint64_t pools = 0;
  io(pools);
  if (!io.ok() || pools > 65536) return Error{directory.string() + ": damaged"};
  for (uint64_t i = 0; i < pools; ++i) {
    auto pool = std::make_shared<PoolIndex>();
    where(io, pool->where);
    io(pool->live_bytes), io(pool->live_blocks), io(pool->peak.state), io(pool->peak.bytes);
    std::string problem;
    PoolIndex::for_each_column(*pool, [&](const char* name, auto& column) {
      uint64_t size = 0;
      io(size);
      auto mapped = std::remove_reference_t<decltype(column)>::map(column_path(directory, i, name),
                                                                   io.ok() ? size : 0);
      if (!mapped) {
        problem = mapped.error().message;
      } else {
        column = std::move(mapped).value();
      }
    });
    if (!problem.empty()) return Error{problem};
    index->pools.push_back(std::move(pool));
  }
  if (!io.ok() || !io.at_end() || !sound(*index)) return Error{directory.string() + ": damaged"};
  index->make_sites();
  return index;
}

void copy_tables(const StackTable& stacks, const StringTable& strings, InputIndex& index) {
  for (uint32_t i = 0; i < strings.size(); ++i) index.strings.intern(strings.text(StringId(i)));
  for (uint32_t i = 1; i < stacks.size(); ++i) {
    index.stacks.intern(stacks.parent(StackId(i)),
                        index.stacks.intern_frame(stacks.frame(stacks.innermost(StackId(i)))));
  }
}

}  // namespace memscope::view
