// Figures as people read them: three significant digits and a unit, shares in per cent, counts with
// separators.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/text.h"

namespace layertrace::report {

// "812 ns", "1.23 µs", "45.6 ms", "1,234 s".
std::string format_time(double ns, const Glyphs& glyphs);

// "1.20–1.40 ms", "950 µs–1.40 ms"; one time where both read the same.
std::string format_time_range(double least_ns, double most_ns, const Glyphs& glyphs);

// "45.6 %". What is small but not nothing reads "<0.1 %"; what falls short of the whole never reads
// "100 %".
std::string format_share(double share);

// "1,204"; a mean over steps that is not whole keeps a digit or two: "12.5", "0.33".
std::string format_count(double count);
std::string format_count(std::uint64_t count);

// "812", "1.23 k", "45.6 G"; with a unit "812 B", "1.23 kB/s".
std::string format_si(double value, std::string_view unit = "");

// "812 B", "16 KiB", "1.5 MiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace layertrace::report
