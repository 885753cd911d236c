// Text for a terminal: what it may contain, how wide it is, how it is cut and wrapped. Widths are
// in columns. Text from a traced program is never trusted: `printable` first.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace memscope {

// One line without control characters (they could drive the terminal): white space runs become one
// blank, other controls and bytes that are no UTF-8 become U+FFFD.
std::string printable(std::string_view text);

// Columns `text` takes: 0 for combining marks, 2 for wide East Asian characters and emoji.
size_t display_width(std::string_view text);

// At most `width` columns: the end, or for paths the beginning, gives way to `mark`.
std::string cut_end(std::string_view text, size_t width, std::string_view mark);
std::string cut_start(std::string_view text, size_t width, std::string_view mark);

// Lines of at most `width` columns, broken at blanks; a longer word is broken anywhere. Never
// empty.
std::vector<std::string> wrap(std::string_view text, size_t width);

// `path` as seen from `directory` where it lies below it, else whole.
std::string relative_path(std::string_view path, std::string_view directory);

// What a person calls a process: "train.py" for "python3 -u train.py --lr 1", "trainer" for
// "python3 -m trainer", else the program's own name.
std::string program_name(std::string_view argv0, std::string_view command);

// A curve in `width` characters at most, from its own minimum to its maximum: "▁▂▃▅▇", or in ASCII
// "_.-=#". Empty where there are fewer than two finite values or they are all the same.
std::string sparkline(std::span<const double> values, size_t width, bool unicode);

}  // namespace memscope
