#include "import/csv_rows.h"

#include <algorithm>
#include <cstring>

namespace memscope {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool ends_line(std::string_view text, size_t at) {
  return at == text.size() || text[at] == '\n' ||
         (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] == '\n'));
}

// `file(12): function` or `object(+0x1) [0x7f]`.
bool is_frame(std::string_view line) {
  const size_t close = line.find("): ");
  if (close != kNone && close != 0 && line[close - 1] >= '0' && line[close - 1] <= '9') return true;
  return line.find("[0x") != kNone;
}

// Whether the line at `at` continues a bare call stack.
bool goes_on(std::string_view text, size_t at) {
  const std::string_view line = text.substr(at, text.find('\n', at) - at);
  return is_frame(line) && looks_like_row(line) == Looks::kNo;
}

// Where the first `",` from `at` on is that ends a name; kNone where there is none on the line.
size_t name_end(std::string_view text, size_t at) {
  const size_t line = std::min(text.find('\n', at), text.size());
  for (;;) {
    at = text.find("\",", at);
    if (at == kNone || at >= line) return kNone;
    if (looks_like_after_name(text.substr(at + 2)) == Looks::kYes) return at;
    ++at;
  }
}

// Likewise the first `}"` that ends an Attr; the quote's place.
size_t attr_end(std::string_view text, size_t at) {
  const size_t line = std::min(text.find('\n', at), text.size());
  for (;;) {
    at = text.find("}\"", at);
    if (at == kNone || at >= line) return kNone;
    ++at;
    if (ends_line(text, at + 1) || text[at + 1] == ',') return at;
  }
}

}  // namespace

CsvRows::CsvRows(InputFile file)
    : file_(std::move(file)),
      window_(std::clamp<size_t>(file_.size() + 1, 4096, kWindow)),
      scratch_(kMaxFields) {
  fields_.reserve(kMaxFields);
}

Result<CsvRows> CsvRows::open(const std::filesystem::path& path) {
  auto file = InputFile::open(path);
  if (!file) return file.error();
  return CsvRows(std::move(file).value());
}

void CsvRows::rewind() {
  columns_ = ColumnMap();
  begin_ = end_ = 0;
  final_ = false;
  offset_ = headers_ = 0;
  line_ = 1;
}

// Reads on; false where the window is as large as it may be.
bool CsvRows::refill() {
  if (begin_ != 0) {
    std::memmove(window_.data(), window_.data() + begin_, end_ - begin_);
    offset_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == window_.size()) {
    if (window_.size() >= kMaxRow) return false;
    window_.resize(window_.size() * 2);
  }
  const size_t got = file_.read_at(offset_ + end_, window_.data() + end_, window_.size() - end_);
  end_ += got;
  final_ = got == 0;
  return true;
}

// Blank lines, NULs between lines, byte order marks.
void CsvRows::skip_noise() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  while (begin_ != end_) {
    const char c = window_[begin_];
    if (c == '\n') {
      ++line_;
    } else if (c == kMark[0] && end_ - begin_ >= kMark.size() &&
               std::equal(kMark.begin(), kMark.end(), window_.begin() + begin_)) {
      begin_ += kMark.size();
      continue;
    } else if (c != '\r' && c != '\0') {
      return;
    }
    ++begin_;
  }
}

bool CsvRows::next(Row& row) {
  for (;;) {
    skip_noise();
    if (begin_ == end_) {
      if (final_) return false;
      refill();
      continue;
    }
    bool is_row = false;
    if (parse(row, is_row)) {
      if (is_row) return true;
    } else if (!refill()) {
      skip_long_row(row);
      return true;
    }
  }
}

// False where the row does not end in the window.
bool CsvRows::parse(Row& row, bool& is_row) {
  const std::string_view text(window_.data() + begin_, end_ - begin_);
  fields_.clear();
  size_t at = 0, count = 0;
  for (;;) {
    Field field;
    const End end = at < text.size() && text[at] == '"' ? quoted(text, at, count, field)
                                                        : bare(text, at, count, field);
    if (end == End::kMore) return false;
    if (fields_.size() < kMaxFields) fields_.push_back(field);
    ++count;
    if (end == End::kComma) continue;
    is_row = deliver(count, at, end, row);
    return true;
  }
}

bool CsvRows::whole_line(std::string_view text, size_t at) const {
  return final_ || text.find('\n', at) != kNone;
}

// What follows a field that is over, at `at`.
CsvRows::End CsvRows::after_field(std::string_view text, size_t& at) const {
  if (at < text.size() && text[at] == '\r') ++at;
  if (at == text.size()) return final_ ? End::kFile : End::kMore;
  return text[at++] == '\n' ? End::kLine : End::kComma;
}

CsvRows::Close CsvRows::strict_close(std::string_view text, size_t at, size_t place) const {
  Close close;
  for (size_t from = at + 1;;) {
    const size_t quote = text.find('"', from);
    if (quote == kNone) {
      if (!final_ && text.size() - at < kStrict) close.answer = Close::kMore;
      return close;
    }
    if (quote - at > kStrict) return close;
    // Three bytes tell a doubled quote, "\r\n" or a comma after this one apart.
    if (quote + 3 > text.size() && !final_) {
      close.answer = Close::kMore;
      return close;
    }
    if (text.substr(quote + 1).starts_with('"')) {
      close.doubled = true;
      from = quote + 2;
      continue;
    }
    close.quote = quote;
    if (may_follow(text, at, place, close)) close.answer = Close::kYes;
    return close;
  }
}

// Whether what comes after the closing quote is what comes after the field at `begin`.
bool CsvRows::may_follow(std::string_view text, size_t begin, size_t place, Close& close) const {
  const size_t after = close.quote + 1;
  const bool line = ends_line(text, after);
  if (!line && text[after] != ',') return false;
  const std::optional<Column> column = columns_.at(place);
  if (column == Column::kAttr) {
    return close.quote == begin + 1 || text[close.quote - 1] == '}';
  }
  if (column != Column::kName || !columns_.standard()) return true;
  if (line) return false;
  const Looks looks = looks_like_after_name(text.substr(after + 1));
  if (looks == Looks::kTooShort && !final_) close.answer = Close::kMore;
  return looks == Looks::kYes;
}

CsvRows::End CsvRows::quoted(std::string_view text, size_t& at, size_t place, Field& field) {
  const Close close = strict_close(text, at, place);
  if (close.answer == Close::kMore) return End::kMore;
  if (close.answer == Close::kYes) {
    field.raw_begin = at;
    field.raw_size = close.quote + 1 - at;
    std::string_view inside = text.substr(at + 1, close.quote - at - 1);
    field.begin = at + 1;
    field.size = inside.size();
    at = close.quote + 1;
    if (close.doubled) {
      std::string& scratch = scratch_[std::min(place, kMaxFields - 1)];
      if (scratch.capacity() > kWindow / 16) std::string().swap(scratch);
      scratch.clear();
      field.scratch = true;
      while (!inside.empty()) {  // one quote of each pair
        const size_t quote = std::min(inside.find('"'), inside.size() - 1);
        scratch.append(inside.substr(0, quote + 1));
        inside.remove_prefix(std::min(quote + 1 + (inside[quote] == '"' ? 1u : 0u), inside.size()));
      }
    }
    return after_field(text, at);
  }
  return loosely_quoted(text, at, place, field);
}

CsvRows::End CsvRows::loosely_quoted(std::string_view text, size_t& at, size_t place,
                                     Field& field) {
  const std::optional<Column> column = columns_.at(place);
  const bool is_name = column == Column::kName && columns_.standard();
  const bool is_attr = column == Column::kAttr;
  std::string& scratch = scratch_[std::min(place, kMaxFields - 1)];
  if (scratch.capacity() > kWindow / 16) std::string().swap(scratch);
  field.raw_begin = at;
  size_t piece = at + 1;  // what is not in `scratch` yet
  size_t from = piece;
  size_t known_end = 0;  // of a name or an Attr: the quote that ends it
  const auto finish = [&](size_t end, size_t next) {
    if (field.scratch) {
      scratch.append(text.substr(piece, end - piece));
    } else {
      field.begin = piece;
      field.size = end - piece;
    }
    field.raw_size = next - field.raw_begin;
    at = next;
  };
  for (;;) {
    const size_t quote = std::min(text.find('"', from), text.size());
    for (size_t line = from; columns_.standard();) {
      const void* found = std::memchr(text.data() + line, '\n', quote - line);
      if (found == nullptr) break;
      line = static_cast<size_t>(static_cast<const char*>(found) - text.data()) + 1;
      const Looks looks = looks_like_row(text.substr(line));
      if (looks == Looks::kTooShort && !final_) return End::kMore;
      if (looks != Looks::kYes) continue;
      finish(line - 1, line);
      return End::kCut;
    }
    if (quote == text.size()) {
      if (!final_) return End::kMore;
      finish(quote, quote);
      return End::kCut;
    }
    // Three bytes tell a doubled quote, "\r\n" or a comma after this one apart.
    if (quote + 3 > text.size() && !final_) return End::kMore;
    from = quote + 1;
    const char after = from < text.size() ? text[from] : '\n';
    bool doubled = false;
    bool closes = false;
    if (after == '"') {
      doubled = true;
      // As the original wrote a name that ends in a quote: `"say "hi"",1700...`.
      if (is_name && quote + 2 < text.size() && text[quote + 2] == ',') {
        const Looks looks = looks_like_after_name(text.substr(quote + 3));
        if (looks == Looks::kTooShort && !final_) return End::kMore;
        if (looks == Looks::kYes) {
          finish(quote + 1, quote + 2);
          return after_field(text, at);
        }
      }
    } else if (is_name && after == ',') {
      const Looks looks = looks_like_after_name(text.substr(from + 1));
      if (looks == Looks::kTooShort && !final_) return End::kMore;
      if (looks != Looks::kYes && known_end < quote) {
        if (!whole_line(text, from)) return End::kMore;
        known_end = name_end(text, from);
      }
      closes = looks == Looks::kYes || known_end == kNone;
    } else if (is_name && ends_line(text, from)) {
      const Looks looks = looks_like_row(text.substr(std::min(from + 1, text.size())));
      closes = looks == Looks::kYes || from >= text.size();
    } else if (is_attr && (after == ',' || ends_line(text, from))) {
      closes = quote == field.raw_begin + 1 || text[quote - 1] == '}';
      if (!closes && known_end < quote) {
        if (!whole_line(text, from)) return End::kMore;
        known_end = attr_end(text, from);
      }
      closes = closes || known_end == kNone;
    } else {
      closes = after == ',' || ends_line(text, from);
    }
    if (closes) {
      finish(quote, from);
      return after_field(text, at);
    }
    if (!doubled) continue;
    if (!field.scratch) scratch.clear();
    field.scratch = true;
    scratch.append(text.substr(piece, from - piece));  // with one of the two
    from = piece = quote + 2;
  }
}

CsvRows::End CsvRows::bare_name(std::string_view text, size_t& at, Field& field) const {
  const size_t begin = at;
  size_t end = kNone;
  for (size_t comma = begin;; ++comma) {
    const size_t from = comma;
    comma = text.find(',', from);
    const size_t stop = std::min(comma, text.size());
    const void* line = std::memchr(text.data() + from, '\n', stop - from);
    if (line != nullptr) {
      if (end == kNone) end = static_cast<size_t>(static_cast<const char*>(line) - text.data());
      break;
    }
    if (comma == kNone) {
      if (!final_) return End::kMore;
      if (end == kNone) end = text.size();
      break;
    }
    if (end == kNone) end = comma;  // the first one, unless a better is found
    const Looks looks = looks_like_after_name(text.substr(comma + 1));
    if (looks == Looks::kTooShort && !final_) return End::kMore;
    if (looks == Looks::kYes) {
      end = comma;
      break;
    }
  }
  field.begin = field.raw_begin = begin;
  field.size = field.raw_size = end - begin;
  at = end;
  return after_field(text, at);
}

CsvRows::End CsvRows::bare(std::string_view text, size_t& at, size_t place, Field& field) const {
  const std::optional<Column> column = columns_.at(place);
  if (column == Column::kName && columns_.standard()) return bare_name(text, at, field);
  const size_t begin = at;
  size_t end = begin;
  if (column == Column::kAttr && begin < text.size() && text[begin] == '{') {
    const size_t line = text.find('\n', begin);
    if (line == kNone && !final_) return End::kMore;
    for (size_t brace = begin; (brace = text.find('}', brace)) < std::min(line, text.size());) {
      ++brace;
      if (!ends_line(text, brace) && text[brace] != ',') continue;
      end = brace;
      break;
    }
  }
  const bool is_stack = column == Column::kPythonStack || column == Column::kCStack;
  size_t first_line = begin;
  for (;; ++end) {
    while (end < text.size() && text[end] != ',' && text[end] != '\n') ++end;
    if (end == text.size()) {
      if (!final_) return End::kMore;
      break;
    }
    if (!is_stack || text[end] == ',' || !is_frame(text.substr(first_line, end - first_line)))
      break;
    if (!whole_line(text, end + 1)) return End::kMore;
    if (!goes_on(text, end + 1)) break;
    first_line = end + 1;
  }
  field.begin = field.raw_begin = begin;
  field.size = field.raw_size = end - begin;
  if (field.size != 0 && text[end - 1] == '\r' && (end == text.size() || text[end] == '\n')) {
    --field.size;
  }
  at = end;
  return after_field(text, at);
}

// Makes the row of the fields found; false for a header.
bool CsvRows::deliver(size_t count, size_t used, End end, Row& row) {
  const char* text = window_.data() + begin_;
  row.cells = {};
  row.problem.clear();
  row.cells.line = line_;
  row.cells.whole = {offset_ + begin_, used};
  line_ += static_cast<uint64_t>(std::count(text, text + used, '\n'));
  begin_ += used;

  std::array<std::string_view, kMaxFields> texts;
  bool maybe_header = false;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    texts[i] = field.scratch ? std::string_view(scratch_[i])
                             : std::string_view(text + field.begin, field.size);
    maybe_header = maybe_header || texts[i] == column_name(Column::kEventType);
  }
  if (maybe_header && columns_.take_header({texts.data(), fields_.size()})) {
    ++headers_;
    return false;
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    const auto column = columns_.at(i);
    if (!column) continue;
    row.cells[*column] = texts[i];
    if (*column == Column::kAttr) {
      row.cells.attr = {row.cells.whole.offset + fields_[i].raw_begin, fields_[i].raw_size};
    }
  }
  if (end == End::kCut) {
    row.problem = begin_ == end_ && final_ ? "the file ends within the row"
                                           : "the row is cut off within a quoted field";
  } else if (end == End::kFile && count < columns_.count()) {
    row.problem = "the file ends within the row";
  } else if (count < columns_.needed()) {
    row.problem =
        "it has " + std::to_string(count) + " of " + std::to_string(columns_.count()) + " columns";
  }
  return true;
}

// The window is full and the row has no end in it: goes on to the next line that looks like a row
// (with columns in an order of their own: to the next line).
void CsvRows::skip_long_row(Row& row) {
  row.cells = {};
  row.cells.line = line_;
  row.cells.whole.offset = offset_ + begin_;
  row.problem = "it is longer than " + std::to_string(kMaxRow >> 20) + " MiB";
  bool line_begins = false;
  for (bool found = false; !found;) {
    const std::string_view text(window_.data() + begin_, end_ - begin_);
    size_t used = 0;
    for (;;) {
      if (line_begins) {
        const Looks looks = columns_.standard() ? looks_like_row(text.substr(used)) : Looks::kYes;
        found = looks == Looks::kYes;
        if (found || (looks == Looks::kTooShort && !final_)) break;
      }
      const size_t line = text.find('\n', used);
      line_begins = line != kNone;
      used = line_begins ? line + 1 : text.size();
      if (!line_begins) break;
    }
    line_ += static_cast<uint64_t>(
        std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(used), '\n'));
    begin_ += used;
    if (!found && (final_ || !refill())) break;
  }
  row.cells.whole.size = offset_ + begin_ - row.cells.whole.offset;
}

}  // namespace memscope
