// Numbers as people read them. Pure functions; every text is ASCII.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace memscope {

// Bytes in binary units with three significant digits: "0 B", "999 B", "1.00 KiB", "290 MiB".
// A value that would read as 1000 or more of a unit goes to the next: 1000 KiB is "0.98 MiB".
std::string format_bytes(double bytes);
std::string format_bytes(int64_t bytes);
// As format_bytes, with a sign: "+1.00 MiB", "-3.00 KiB", "0 B".
std::string format_bytes_change(double bytes);
// Whole numbers with thousands apart: "12,345".
std::string format_count(int64_t count);
// A number that is usually whole: "1", "0.5", "2.25", "1,024".
std::string format_rate(double value);
// A span of time in its two largest units: "850 ns", "12.3 ms", "4.21 s", "2 min 5 s", "3 h 20
// min".
std::string format_duration(uint64_t ns);
// "1 block", "3 blocks", "12,000 blocks".
std::string format_plural(int64_t count, std::string_view noun);
// Of a probability: "98 %", never "100 %" for less than 1.
std::string format_percent(double probability);

}  // namespace memscope
