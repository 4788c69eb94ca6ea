// What the JSON reports have in common.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <layertrace/profile.h>

namespace layertrace::report {

using Json = nlohmann::ordered_json;

// A mean of 12 steps that all took 5 ns is 5, not 5.0: readers compare counts with ==.
Json number(double value);

Json text_or_null(const std::string& text);

Json kernel_json(const Profile& profile, const Kernel& kernel);

// Where and with what it was made.
Json run_json(const RunInfo& run);

// On one line. Bytes that are not UTF-8 become U+FFFD: a module's name must not cost the user the
// report.
std::string dump(const Json& json);

// An array with one element a line: compact, and yet `diff` and `grep` work on it.
template <typename Items, typename ToJson>
std::string dump_lines(const Items& items, ToJson to_json) {
  std::string out = "[";
  for (const auto& item : items) {
    out += &item == &items.front() ? "\n" : ",\n";
    out += dump(to_json(item));
  }
  return out + "]";
}

// The path of a layer by its index, null outside any.
Json path_json(const Profile& profile, int layer);

}  // namespace layertrace::report
