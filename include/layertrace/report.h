// Reports: a Profile as text, for people and for programs.
//
//   std::cout << layertrace::tree(profile);
//   std::cout << layertrace::tree(profile, {.depth = 2, .sort = layertrace::SortKey::kTotal});
//
// Every function here is pure: it reads its arguments, keeps nothing, and may be called from any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/result.h>

namespace layertrace {

enum class Column : std::uint8_t {
  kType,
  kForward,   // forward host time per step, with its share of the step
  kBackward,  // backward host time, likewise
  kTotal,     // forward + backward + recompute
  kRecompute,
  kSelf,          // host time without children, all phases
  kActivityTime,  // activities' time, all phases
  kBusy,          // the union of the activities' intervals, all phases
  kCalls,
  kActivities,
  kGpuForward,   // how long the GPU was busy with the forward, per step, with its share of the step
  kGpuBackward,  // likewise with the backward
};

enum class SortKey : std::uint8_t {
  kDefinition,
  kForward,
  kBackward,
  kTotal,
  kSelf,
  kCalls,
  kActivities,
  kName
};

struct TreeOptions {
  int depth = -1;          // levels below the start node; −1 for all
  std::string start = {};  // path of the start node; "" for the whole model
  SortKey sort = SortKey::kDefinition;
  bool fold =
      true;  // numbered siblings of one shape become "12 × Block", with the sums of their figures
  // Empty: type, forward, backward, calls, activities; recompute where there is any, and the GPU's
  // forward and backward where they were recorded.
  std::vector<Column> columns = {};
  int width = 0;  // columns of the terminal; 0 for as wide as it takes
  bool color = false;
  bool ascii = false;
};

// Names as on the command line: "forward", "activity_time"… An unknown name is an error that lists
// those that exist.
LAYERTRACE_API Result<Column> parse_column(std::string_view name);
LAYERTRACE_API Result<SortKey> parse_sort_key(std::string_view name);

// Fills in `width`, `color` and `ascii` as suits the given stream (1 or 2): a terminal's width and
// colours there, plain text in pipes, box-drawing only where the locale is UTF-8. NO_COLOR and
// TERM=dumb are honoured. What is already set stays: a `width`, `color` or `ascii` asked for on a
// command line comes first.
LAYERTRACE_API TreeOptions for_terminal(int file_descriptor, TreeOptions options = {});

// The layer tree, with the coverage ledger as its last lines. An unknown start node gives a
// one-line tree that says so; check with Profile::find() first where that matters.
LAYERTRACE_API std::string tree(const Profile& profile, const TreeOptions& options = {});

// The same as a piece of HTML without scripts or style sheets, as notebooks show it.
LAYERTRACE_API std::string tree_html(const Profile& profile, const TreeOptions& options = {});

// {"layers": […], "steps": […], "health": {…}, …}; the keys are described in docs/json.md and only
// ever added to.
LAYERTRACE_API std::string layers_json(const Profile& profile);

}  // namespace layertrace
