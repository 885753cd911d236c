#include "view/input_loader.h"

#include <algorithm>

#include "import/open_input.h"
#include "view/index_builder.h"
#include "view/index_file.h"
#include "view/name_table.h"

namespace memscope::view {
namespace {

InputFacts facts_of(const std::string& path, const InputInfo& info) {
  InputFacts facts{.path = path, .kind = std::string(input_kind_name(info.kind))};
  facts.ended = info.ended;
  const std::filesystem::path file(path);
  facts.name = file.filename() == "trace.msm" ? file.parent_path().filename().string()
                                              : file.filename().string();
  if (info.process) {
    facts.process = ProcessSeen{.host = info.process->host,
                                .argv0 = info.process->argv0,
                                .agent = info.process->agent,
                                .pid = static_cast<int64_t>(info.process->pid),
                                .rank = info.process->rank.value_or(-1)};
    facts.command = info.process->command;
  }
  facts.dropped = info.dropped;
  facts.complete = info.complete;
  return facts;
}

std::string part_key(const std::string& key, size_t part) {
  return key + "part " + std::to_string(part) + '\n';
}

// All parts of a file, or none.
std::vector<LoadedInput> from_cache(const IndexCache& cache, const std::string& key,
                                    const SymbolOptions& symbols) {
  std::vector<LoadedInput> parts;
  size_t count = 1;
  for (size_t part = 0; part < count; ++part) {
    LoadedInput input{.key = part_key(key, part)};
    const auto directory = cache.find(input.key);
    if (!directory) return {};
    auto loaded = load_index(input.key, *directory);
    if (!loaded) {
      cache.remove(*directory);
      return {};
    }
    input.index = std::move(loaded).value();
    input.directory = *directory;
    input.names_key = names_key(*input.index, symbols);
    if (!input.names_key.empty()) {
      auto names = load_names(derived_directory(*directory, input.names_key) / kNamesFile);
      if (names != nullptr) input.index->take_names(std::move(names));
    }
    count = input.index->facts.parts;
    parts.push_back(std::move(input));
  }
  return parts;
}

// About what an event takes in a log (docs/benchmarks.md); 0 where it cannot be guessed.
double expected_events(const Input& input) {
  constexpr double kBytesAnEvent = 5.5;
  if (input.trace() == nullptr) return 0;
  return static_cast<double>(input.trace()->extent().log_bytes) / kBytesAnEvent + 1;
}

bool build(Input& input, const LoadOptions& options, const std::filesystem::path& room,
           InputIndex& index) {
  const double expected = expected_events(input);
  const auto progress = [&](uint64_t events) {
    if (!options.progress) return true;
    return options.progress(expected == 0 ? 0
                                          : std::min(0.99, static_cast<double>(events) / expected));
  };
  return input.visit([&](auto& source) {
    IndexBuilder builder(index, room, [&source](uint64_t ticks) { return source.time_of(ticks); });
    if (!build_index(source, builder, progress)) return false;
    copy_tables(input.stacks(), input.strings(), index);
    index.threads = input.threads();
    if (index.threads.empty()) index.threads.resize(1);
    builder.finish();
    return true;
  });
}

}  // namespace

Result<std::vector<LoadedInput>> load_inputs(const std::string& path, const LoadOptions& options) {
  const bool cached = options.cache != nullptr && options.cache->usable();
  const std::string key = cached ? input_key(path) : "";
  std::vector<LoadedInput> result;
  if (cached) result = from_cache(*options.cache, key, options.symbols);
  if (!result.empty()) return result;
  auto opened = open_input(path);
  if (!opened) return opened.error();
  std::vector<Input>& inputs = opened.value();
  for (size_t part = 0; part < inputs.size(); ++part) {
    LoadedInput made{.fresh = true, .key = part_key(key, part)};
    if (cached) made.room = options.cache->make_room();
    auto index = std::make_shared<InputIndex>();
    index->facts = facts_of(path, inputs[part].info());
    index->facts.part = static_cast<uint32_t>(part);
    index->facts.parts = static_cast<uint32_t>(inputs.size());
    const bool whole = build(inputs[part], options, made.room, *index);
    for (std::string& line : inputs[part].damage()) index->damage.push_back(std::move(line));
    if (inputs[part].lost()) index->facts.complete = false;
    made.names_key = names_key(*index, options.symbols);
    made.index = std::move(index);
    result.push_back(std::move(made));
    if (whole) continue;
    if (cached) {
      for (const LoadedInput& input : result) options.cache->remove(input.room);
    }
    return Error{path + ": stopped"};
  }
  return result;
}

std::filesystem::path derived_directory(const std::filesystem::path& directory,
                                        const std::string& names_key) {
  if (directory.empty() || names_key.empty()) return directory;
  return directory / ("names-" + names_key);
}

std::filesystem::path keep_input(const LoadedInput& input, const IndexCache& cache) {
  if (!input.fresh || input.room.empty()) return {};
  const InputFacts& facts = input.index->facts;
  // What is still being written is another input in a moment.
  const bool kept =
      facts.ended != "running" && part_key(input_key(facts.path), facts.part) == input.key &&
      save_index(*input.index, input.key, input.room) && cache.commit(input.room, input.key);
  if (!kept) cache.remove(input.room);
  cache.evict();
  return kept ? cache.find(input.key).value_or("") : "";
}

}  // namespace memscope::view
