// Reports: a Profile as text, for people and for programs.
//
//   std::cout << layertrace::tree(profile);
//   std::cout << layertrace::tree(profile, {.depth = 2, .sort = layertrace::SortKey::kTotal});
//
// Every function here is pure: it reads its arguments, keeps nothing, and may be called from any
// thread.
#pragma once

#include <cstdint>
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
  kKernels,      // kernels, copies and sets of a GPU
  kLaunches,     // calls that asked for them
  kGpuEventForward,   // GPU time by CUDA events
  kGpuEventBackward,  // likewise
  kIdle,              // how long the GPU had nothing to do while the host was inside
  kLaunchBound,       // the same in forward and backward, as a share of the host's time there
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
  // Empty: type, forward, backward, calls, activities; recompute where there is any. Where a GPU
  // was recorded: its forward and backward, too, and kernels in place of activities.
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

enum class KernelSort : std::uint8_t { kTime, kCount, kName };

struct KernelOptions {
  std::string module = {};  // path: only what serves this layer and those below it; "" for all
  KernelSort sort = KernelSort::kTime;
  int limit = 0;  // so many at most; 0 for all
  int width = 0;  // as in TreeOptions
  bool color = false;
  bool ascii = false;
};

// "time", "count" or "name".
LAYERTRACE_API Result<KernelSort> parse_kernel_sort(std::string_view name);

// What ran on a GPU in all recorded steps: a row for each kernel and kind of copy, with counts and
// times, how it was launched, and whom it serves. An unknown module gives one line that says so.
LAYERTRACE_API std::string kernels_table(const Profile& profile, const KernelOptions& options = {});

// {"kernels": […]}, as in layers_json().
LAYERTRACE_API std::string kernels_json(const Profile& profile, const KernelOptions& options = {});

}  // namespace layertrace
