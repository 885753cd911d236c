#include "import/json_values.h"

#include <bit>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace memscope {
namespace {

// The bytes, one by one. A text that is longer than any may be ends them: the parser would gather
// it whole first.
class Bytes {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  struct State {
    ByteStream* stream = nullptr;
    size_t since_quote = 0;
    bool too_long = false;
  };

  Bytes() = default;
  explicit Bytes(State& state) : state_(&state) {}
  char operator*() const { return static_cast<char>(*state_->stream->at()); }
  Bytes& operator++() {
    state_->since_quote = **this == '"' ? 0 : state_->since_quote + 1;
    state_->stream->skip(1);
    return *this;
  }
  friend bool operator==(const Bytes& a, const Bytes& b) { return a.ended() == b.ended(); }
  friend bool operator!=(const Bytes& a, const Bytes& b) { return !(a == b); }

 private:
  bool ended() const {
    if (state_ == nullptr) return true;
    // Numbers and blanks lie between quotes as well.
    constexpr size_t kMost = 4 * Values::kMaxText;
    state_->too_long = state_->since_quote > kMost;
    return state_->too_long || !state_->stream->need(1);
  }
  State* state_ = nullptr;
};

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(Values& values) : values_(values) {}

  bool null() override { return values_.push({}); }
  bool boolean(bool value) override {
    return values_.push({.kind = ValueKind::kBool, .bits = value ? 1u : 0u});
  }
  bool number_integer(number_integer_t value) override {
    return values_.push_number(static_cast<uint64_t>(value), value < 0);
  }
  bool number_unsigned(number_unsigned_t value) override { return values_.push_number(value); }
  bool number_float(number_float_t value, const string_t&) override {
    return values_.push({.kind = ValueKind::kFloat, .bits = std::bit_cast<uint64_t>(value)});
  }
  bool string(string_t& value) override { return values_.push_text(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    return values_.push_object(ValueKind::kDict) && values_.mark();
  }
  bool key(string_t& value) override { return values_.push_text(value); }
  bool end_object() override { return values_.set_items(); }
  bool start_array(std::size_t) override {
    return values_.push_object(ValueKind::kList) && values_.mark();
  }
  bool end_array() override { return values_.appends(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  Values& values_;
};

}  // namespace

Result<Value> read_json(ByteStream& bytes, Values& values) {
  Bytes::State state{.stream = &bytes};
  Handler handler(values);
  const bool parsed = nlohmann::json::sax_parse(Bytes(state), Bytes(), &handler,
                                                nlohmann::json::input_format_t::json, false);
  Value root;
  if (parsed && values.finish(root)) return root;
  std::string why = values.error().empty() ? bytes.error() : values.error();
  if (why.empty() && state.too_long) why = "a text in it is longer than any can be";
  if (why.empty()) why = "the JSON is damaged or cut off here";
  return Error{"at byte " + std::to_string(bytes.offset()) + ": " + why};
}

}  // namespace memscope
