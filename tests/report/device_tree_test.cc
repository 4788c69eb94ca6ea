// What a tree says of a GPU.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <layertrace/report.h>

#include "profiles.h"
#include "rows.h"

namespace layertrace {
namespace {

TEST(DeviceTree, ShowsTheGpuFirst) {
  EXPECT_EQ('\n' + tree(made::gpu_net()), R"(
Net · train_net · some GPU
2 recorded steps of 11.0 ms on average (10.0–12.0 ms). Figures are per step, shares are of the step.

layer        type            GPU forward     GPU backward          forward         backward  calls  kernels
Net                       500 µs   4.5 %  1.00 ms   9.1 %  4.00 ms  36.4 %  5.00 ms  45.5 %      1       12
├── body     Sequential   500 µs   4.5 %  1.00 ms   9.1 %  3.00 ms  27.3 %  4.00 ms  36.4 %      1       10
│   ├── 0    Linear       250 µs   2.3 %   800 µs   7.3 %  2.00 ms  18.2 %  4.00 ms  36.4 %      1        6
│   └── 1    ReLU                      –                –  1.00 ms   9.1 %                –      1        4
└── head     Linear       150 µs   1.4 %                –  1.00 ms   9.1 %  1.00 ms   9.1 %      1        2
(optimizer)              3.00 µs  <0.1 %  3 activities, 1.00 ms on the host
(data)                    200 µs   1.8 %  1 activity, 2.00 ms on the host

Of a step GPU 0 was busy for 2.50 ms (22.7 %) and idle for 8.50 ms (77.3 %); copying while no kernel ran: 200 µs (1.8 %).
Idle longest, by cause and where the host was: launch in body.0 backward 3.10 ms, data in (data) 1.50 ms, synchronisation in body forward 900 µs.
By CUDA events the innermost layers took 1.38 ms of a step, by their kernels 1.20 ms: 15.0 % more.
100 % of activity time is attributed: 24 activities, 2.90 ms in all.
No autograd node ran.
0 dropped of 0 records.
What recording cost was not measured.
)");
}

TEST(DeviceTree, HasColumnsOfItsOwn) {
  EXPECT_EQ(rows(made::gpu_net(),
                 {.columns = {Column::kCopies, Column::kLaunches, Column::kGpuEventForward,
                              Column::kGpuEventBackward, Column::kIdle, Column::kLaunchBound}}),
            R"(
layer        copies  launches  GPU event forward  GPU event backward         GPU idle  launch-bound
Net               2         6     550 µs   5.0 %     1.20 ms  10.9 %  3.90 ms  35.5 %        43.3 %
├── body          0         6     550 µs   5.0 %     1.20 ms  10.9 %  3.90 ms  35.5 %        55.7 %
│   ├── 0         0         6     300 µs   2.7 %      900 µs   8.2 %  3.30 ms  30.0 %        55.0 %
│   └── 1         0         0                  –                   –                –             –
└── head          2         3     180 µs   1.6 %                   –   100 µs   0.9 %         5.0 %
(optimizer)                    3.00 µs  <0.1 %  3 activities, 1.00 ms on the host
(data)                          200 µs   1.8 %  1 activity, 2.00 ms on the host
)");
}

TEST(DeviceTree, ShowsEventsWhereThereAreNoKernels) {
  Profile profile = made::gpu_net();
  profile.health.gpu.timing = "events";
  profile.kernels.clear();
  profile.idle.clear();
  for (Step& step : profile.steps) step.devices.clear();
  for (PhaseStats& phase : profile.outside) phase.busy_ns = phase.activities = {};
  const std::string text = tree(profile);
  EXPECT_EQ('\n' + table_of(text), R"(
layer        type            GPU forward     GPU backward          forward         backward  calls
Net                       550 µs   5.0 %  1.20 ms  10.9 %  4.00 ms  36.4 %  5.00 ms  45.5 %      1
├── body     Sequential   550 µs   5.0 %  1.20 ms  10.9 %  3.00 ms  27.3 %  4.00 ms  36.4 %      1
│   ├── 0    Linear       300 µs   2.7 %   900 µs   8.2 %  2.00 ms  18.2 %  4.00 ms  36.4 %      1
│   └── 1    ReLU                      –                –  1.00 ms   9.1 %                –      1
└── head     Linear       180 µs   1.6 %                –  1.00 ms   9.1 %  1.00 ms   9.1 %      1
(optimizer)              1.00 ms on the host
(data)                   2.00 ms on the host
)");
  EXPECT_NE(
      text.find("\nThe GPU's times are by CUDA events around each layer's work on its stream: "
                "there are no kernels without CUPTI.\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("attributed:"), std::string::npos);
  const std::vector<Column> unknown = {Column::kKernels,     Column::kLaunches,   Column::kIdle,
                                       Column::kLaunchBound, Column::kActivities, Column::kBusy};
  const std::string shown = table_of(tree(profile, {.depth = 0, .columns = unknown}));
  const std::string net = shown.substr(shown.find("\nNet"));
  EXPECT_EQ(net.substr(0, net.find('\n', 1)).find_first_of("0123456789"), std::string::npos)
      << shown;
}

TEST(DeviceTree, TellsEachDeviceOfItsOwn) {
  Profile profile = made::gpu_net();
  profile.steps[0].devices.push_back({3, 0, 10'000'000, 0});
  profile.steps[1].devices.push_back({3, 12'000'000, 0, 0});
  EXPECT_NE(tree(profile).find("GPU 3 was busy for 6.00 ms (54.5 %) and idle for 5.00 ms (45.5 %)"),
            std::string::npos);
}

TEST(DeviceTree, SaysWhatOfItIsMissing) {
  Profile profile = made::gpu_net();
  profile.health.gpu.events_missed = 1;
  profile.health.gpu.events_capturing = 20;
  profile.health.gpu.early = 2;
  profile.health.gpu.earlier_graphs = 3;
  EXPECT_NE(
      tree(profile).find(
          "\nOf the GPU's records: 1 pair of events missing, 20 pairs of events not made "
          "while their streams were captured.\n"
          "2 activities of the GPU begin before the host asked for them, by their clocks, which "
          "do not agree; kept as told.\n"
          "3 activities are of CUDA graphs that were captured while nothing was recorded: "
          "what launched a graph counts for them.\n"),
      std::string::npos);
}

}  // namespace
}  // namespace layertrace
