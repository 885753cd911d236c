// Plain structs of every record kind, made from the table, and their encoding as words.
//
//   StepRecord step{.source = 1, .index = 7};
//   append_record(step, dt, words);                       // encodes at the end of a vector
//   if (auto step = decode_record<StepRecord>(words)) ... // nullopt where the words are damaged
//
// Strings of a decoded record point into the words it was decoded from.
#pragma once

#include <bit>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/sampling.h"
#include "trace/record_table.h"

namespace memscope {

namespace record_types {
using u64 = uint64_t;
using i64 = int64_t;
using f64 = double;
using str = std::string_view;
}  // namespace record_types

#define MEMSCOPE_MEMBER(type, name, comment) record_types::type name{};
#define MEMSCOPE_STRUCT(record, number, comment, ...) \
  struct record##Record {                             \
    static constexpr Kind kKind = Kind::k##record;    \
    __VA_ARGS__                                       \
  };
MEMSCOPE_HOT_RECORDS(MEMSCOPE_STRUCT, MEMSCOPE_MEMBER)
MEMSCOPE_COLD_RECORDS(MEMSCOPE_STRUCT, MEMSCOPE_MEMBER)
#undef MEMSCOPE_STRUCT
#undef MEMSCOPE_MEMBER

constexpr WindowRecord window_record(WindowAction action, uint64_t ticks) {
  return {.action = static_cast<uint64_t>(action), .ticks = ticks};
}

// ConfigRecord of a trace in which the host source records: bytes between two samples, 0 = every
// block (core/sampling.h). It holds for all windows of the trace.
inline constexpr std::string_view kHostSampleKey = "agent.host_sample";
// Its value; 0 for what is none.
inline ByteSampling host_sampling(std::string_view value) {
  uint64_t rate = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rate);
  const bool good = error == std::errc{} && end == value.data() + value.size();
  return {good && rate <= ByteSampling::kMaxRate ? rate : 0};
}

// for_each_field(record, [](std::string_view name, auto& value) {...}), in the table's order.
#define MEMSCOPE_VISIT(type, name, comment) visit(std::string_view(#name), record.name);
#define MEMSCOPE_VISITOR(name, number, comment, ...)                                    \
  template <typename Record, typename Visitor>                                          \
  requires std::same_as<std::remove_const_t<Record>, name##Record> void for_each_field( \
      Record& record, Visitor&& visit) {                                                \
    __VA_ARGS__                                                                         \
  }
MEMSCOPE_HOT_RECORDS(MEMSCOPE_VISITOR, MEMSCOPE_VISIT)
MEMSCOPE_COLD_RECORDS(MEMSCOPE_VISITOR, MEMSCOPE_VISIT)
#undef MEMSCOPE_VISITOR
#undef MEMSCOPE_VISIT

// visit_record_kinds([]<typename Record>(std::string_view name) {...}) for every kind of the table.
template <typename Visitor>
void visit_record_kinds(Visitor&& visit) {
#define MEMSCOPE_NO_FIELD(type, name, comment)
#define MEMSCOPE_CALL(name, ...) visit.template operator()<name##Record>(#name);
  MEMSCOPE_HOT_RECORDS(MEMSCOPE_CALL, MEMSCOPE_NO_FIELD)
  MEMSCOPE_COLD_RECORDS(MEMSCOPE_CALL, MEMSCOPE_NO_FIELD)
#undef MEMSCOPE_CALL
#undef MEMSCOPE_NO_FIELD
}

template <typename Record>
inline constexpr bool is_hot = static_cast<uint8_t>(Record::kKind) < kFirstColdKind;

// Words the record takes once encoded, word 0 included.
template <typename Record>
size_t encoded_words(const Record& record) {
  size_t words = 1;
  for_each_field(record, [&](std::string_view, const auto& value) {
    words += 1;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string_view>) {
      words += (value.size() + 7) / 8;
    }
  });
  return words;
}

// Writes the fields to out[1...] and returns word 0, which the caller stores last. `out` has
// encoded_words(record) words. `arg` is the 24-bit argument of a hot kind, ignored for a cold one.
template <typename Record>
uint64_t encode_record(const Record& record, uint32_t arg, uint32_t dt, uint64_t* out) {
  size_t at = 1;
  for_each_field(record, [&](std::string_view, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string_view>) {
      out[at++] = value.size();
      const size_t words = (value.size() + 7) / 8;
      if (words != 0) {
        out[at + words - 1] = 0;
        std::memcpy(out + at, value.data(), value.size());
      }
      at += words;
    } else {
      out[at++] = std::bit_cast<uint64_t>(value);
    }
  });
  return hot_word(Record::kKind, is_hot<Record> ? arg : static_cast<uint32_t>(at), dt);
}

template <typename Record>
void append_record(const Record& record, uint32_t arg, uint32_t dt, std::vector<uint64_t>& out) {
  const size_t start = out.size();
  out.resize(start + encoded_words(record));
  out[start] = encode_record(record, arg, dt, out.data() + start);
}

// `words` is the whole record, word 0 included. Missing trailing fields read as 0 or ""; a string
// that runs past the record gives nullopt.
template <typename Record>
std::optional<Record> decode_record(std::span<const uint64_t> words) {
  Record record;
  size_t at = 1;
  bool damaged = false;
  for_each_field(record, [&](std::string_view, auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if (damaged || at >= words.size()) return;
    if constexpr (std::is_same_v<Value, std::string_view>) {
      const uint64_t bytes = words[at++];
      if (bytes > (words.size() - at) * 8) {
        damaged = true;
        return;
      }
      value = {reinterpret_cast<const char*>(words.data() + at), bytes};
      at += (bytes + 7) / 8;
    } else {
      value = std::bit_cast<Value>(words[at++]);
    }
  });
  if (damaged) return std::nullopt;
  return record;
}

}  // namespace memscope
