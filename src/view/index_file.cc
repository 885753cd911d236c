#include "view/index_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace memscope::view {
namespace {

constexpr const char* kTables = "tables";
constexpr uint64_t kMagic = 0x3178'646e'494d'534d;  // "MSMIndx1"

// One text for both ways: `visit` writes what it is given, or reads into it.
class Writer {
 public:
  static constexpr bool kReads = false;
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(const T& value) { append(&value, sizeof(value)); }
  void operator()(const std::string& text) {
    operator()(uint64_t{text.size()});
    append(text.data(), text.size());
  }
  bool ok() const { return true; }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* from, size_t size) {
    bytes_.append(static_cast<const char*>(from), size);
  }
  std::string bytes_;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(T& value) {
    if (left_.size() < sizeof(T)) return fail();
    std::memcpy(&value, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
  }
  void operator()(std::string& text) {
    uint64_t size = 0;
    operator()(size);
    if (size > left_.size()) return fail();
    text.assign(left_.data(), size);
    left_.remove_prefix(size);
  }
  // How many elements can follow, of at least `each` bytes.
  bool fits(uint64_t count, size_t each) {
    if (count > left_.size() / each) fail();
    return ok_;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

 private:
  void fail() {
    ok_ = false;
    left_ = {};
  }
  std::string_view left_;
  bool ok_ = true;
};

template <typename Io, typename List, typename Each>
void list(Io& io, List& items, Each each) {
  uint64_t count = items.size();
  io(count);
  if constexpr (Io::kReads) {
    if (!io.ok() || !io.fits(count, 1)) return;
    items.clear();
    for (uint64_t i = 0; i < count && io.ok(); ++i) each(items.emplace_back());
  } else {
    for (auto& item : items) each(item);
  }
}

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
  list(io, side.holders, [&](HolderSeen& h) {
    io(h.addr), io(h.birth), io(h.size), io(h.root), io(h.path), io(h.file), io(h.function);
    io(h.text), io(h.cause), io(h.line), io(h.end_line);
  });
  list(io, side.gaps, [&](GapSeen& g) { io(g.from), io(g.to), io(g.reason), io(g.healed); });
  io(side.dropped), io(side.left_out), io(side.ended);
  // A map: by hand.
  uint64_t count = side.sources.size();
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
  list(io, index.threads, [&](ThreadEntry& t) { io(t.tid), io(t.name); });
  list(io, index.owners, [&](std::string& s) { io(s); });
  list(io, index.used_stacks, [&](uint32_t& s) { io(s); });
  list(io, index.names, [&](std::string& s) { io(s); });
  io(index.steps.from), io(index.steps.begin);
  list(io, index.steps.ends, [&](uint64_t& t) { io(t); });
  list(io, index.phases, [&](PhaseSeen& p) { io(p.time), io(p.phase), io(p.module); });
  list(io, index.marks, [&](MarkSeen& m) { io(m.begin), io(m.end), io(m.text), io(m.domain); });
  list(io, index.counters, [&](CounterSeen& c) {
    io(c.name), where(io, c.where);
    list(io, c.times, [&](uint64_t& t) { io(t); });
    list(io, c.values, [&](int64_t& v) { io(v); });
  });
  list(io, index.ooms, [&](OomSeen& o) {
    io(o.time), io(o.size), io(o.allocated), io(o.reserved), where(io, o.where), io(o.stack);
  });
  list(io, index.windows, [&](Span& w) { io(w.begin), io(w.end); });
  side(io, index.side);
  list(io, index.damage, [&](std::string& s) { io(s); });
  io(index.left_out), io(index.unknown_frees), io(index.ambiguous);
}

void write_stacks(Writer& io, const InputIndex& index) {
  io(uint64_t{index.strings.size()});
  for (uint32_t i = 0; i < index.strings.size(); ++i) {
    io(std::string(index.strings.text(StringId(i))));
  }
  io(uint64_t{index.stacks.size()});
  for (uint32_t i = 1; i < index.stacks.size(); ++i) {
    const Frame& frame = index.stacks.frame(index.stacks.innermost(StackId(i)));
    io(index.stacks.parent(StackId(i)).value);
    io(frame.file.value), io(frame.function.value), io(frame.module.value), io(frame.line);
    io(frame.end_line), io(frame.first_line), io(frame.kind);
  }
}

void read_stacks(Reader& io, InputIndex& index) {
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
    io(frame.line), io(frame.end_line), io(frame.first_line), io(frame.kind);
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
        pool->untracked.states.size() != pool->untracked.values.size()) {
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
  Writer io;
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
  const std::filesystem::path path = directory / kTables;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  std::string_view left = io.bytes();
  while (!left.empty()) {
    const ssize_t wrote = write(fd, left.data(), left.size());
    if (wrote <= 0) break;
    left.remove_prefix(static_cast<size_t>(wrote));
  }
  return close(fd) == 0 && left.empty();
}

Result<std::unique_ptr<InputIndex>> load_index(const std::string& key,
                                               const std::filesystem::path& directory) {
  std::ifstream file(directory / kTables, std::ios::binary);
  if (!file) return Error{directory.string() + ": no index"};
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  Reader io(bytes);
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
    auto pool = std::make_unique<PoolIndex>();
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
