#include <array>
#include <string>
#include <utility>

#include <layertrace/layertrace.h>

namespace layertrace {

Result<Timing> parse_timing(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Timing>, 3> kNames{
      {{"both", Timing::kBoth}, {"cupti", Timing::kCupti}, {"events", Timing::kEvents}}};
  for (const auto& [known, timing] : kNames) {
    if (name == known) return timing;
  }
  return Error{"cannot use \"" + std::string(name) + "\" as a timing", "no such name",
               "Use one of: both, cupti, events"};
}

Result<Counting> parse_counting(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Counting>, 3> kNames{
      {{"first", Counting::kFirst}, {"always", Counting::kAlways}, {"off", Counting::kOff}}};
  for (const auto& [known, counting] : kNames) {
    if (name == known) return counting;
  }
  return Error{"cannot count \"" + std::string(name) + "\"", "no such name",
               "Use one of: first, always, off"};
}

}  // namespace layertrace
