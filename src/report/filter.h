// Which layers a tree shows: those that pass every filter, and those that hold them, so that it is
// still a tree.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::report {

// `*` stands for any characters, dots too, and `?` for one. Of several patterns, with commas
// between, one is enough.
bool matches(std::string_view patterns, std::string_view text);

struct Filtered {
  std::vector<bool> shown;  // by layer
  std::size_t passed = 0;   // layers below the roots, and they, that pass the filters
  std::size_t all = 0;      // layers there
  std::string sentence;     // what is shown, and why not all; "" without a filter
};

Filtered filter_layers(const Profile& profile, const TreeOptions& options,
                       const std::vector<int>& roots);

}  // namespace layertrace::report
