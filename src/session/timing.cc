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

}  // namespace layertrace
