// What devices did, in a trace: every field comes back, and no track has two slices at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perfetto/device_spans.h"

namespace layertrace::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsSupersetOf;
using testing::Not;

constexpr std::uint64_t kStream7 = (std::uint64_t{1} << 56) + (7 << 8);

// Written and read back, in the same order.
std::vector<std::string> expect_back(const std::vector<DeviceSpan>& spans) {
  const Dictionary dictionary = a_dictionary();
  DeviceLog put(dictionary);
  for (const DeviceSpan& span : spans) put.device(span);
  const Bytes bytes = write_devices(dictionary, [&](TraceWriter& writer) {
    for (const DeviceSpan& span : spans) writer.device(span);
  });
  EXPECT_THAT(read_devices(bytes), ElementsAreArray(put.lines));
  const auto tracks = loose_tracks(bytes);
  expect_no_overlap(tracks);
  std::vector<std::string> names;
  for (const auto& [uuid, track] : tracks) {
    if (track.name.starts_with("stream")) names.push_back(track.name);
  }
  return names;
}

TEST(Kernels, ComeBackWithEveryField) {
  DeviceSpan span = kernel(1'000, 2'000);
  span.launch_ns = 900;
  span.launch_tid = 4'712;
  span.phase = Phase::kBackward;
  span.layer = LayerId{2};
  span.call = (std::uint64_t{1} << 40) + 3;
  span.what.graph_node = std::uint64_t{7} << 32;
  span.what.correlation = 0xffff'fff0;
  span.what.context = 1;
  span.what.registers = 255;
  span.what.shared_bytes = 49'152;
  span.what.grid = {0xffff'ffff, 65'535, 1};
  span.what.block = {1024, 1, 64};
  for (const float occupancy : {0.F, 1.F, 0.5F, 2.F / 3, 21.F / 64, 0.1F}) {
    span.what.occupancy = occupancy;
    EXPECT_THAT(expect_back({span}), ElementsAre("stream 7"));
  }
}

TEST(Kernels, OfAnEarlierGraphHaveALayerAndACause) {
  DeviceSpan span = kernel(1'000, 2'000);
  span.layer = LayerId{1};
  span.cause = Cause::kEarlierGraph;
  DeviceSpan without = kernel(3'000, 4'000);
  without.cause = Cause::kEarlierGraph;
  expect_back({span, without});

  const Bytes bytes = write_devices(a_dictionary(), [&](TraceWriter& writer) {
    writer.device(span);
    writer.device(without);
  });
  const auto tracks = loose_tracks(bytes);
  const auto& edges = tracks.at(kStream7).edges;
  ASSERT_EQ(edges.size(), 4U);
  EXPECT_THAT(edges[0].annotations, IsSupersetOf({"path", "inferred"}));
  EXPECT_THAT(edges[2].annotations, Contains("unattributed"));
  EXPECT_THAT(edges[2].annotations, Not(Contains("path")));
}

TEST(Kernels, OfOneStreamAreOnOneTrackInWhateverOrderTheyCome) {
  std::vector<DeviceSpan> spans;
  for (std::uint64_t i = 1; i < 1'000; ++i) spans.push_back(kernel(100 * i, 100 * i + 99));
  EXPECT_THAT(expect_back(spans), ElementsAre("stream 7"));
  std::shuffle(spans.begin(), spans.end(), std::mt19937_64(1));
  EXPECT_THAT(expect_back(spans), ElementsAre("stream 7"));
}

// As the simulated GPU's fault `overlap` has it: some begin before the last of the stream has
// ended.
TEST(Kernels, ThatOverlapAreOnSiblings) {
  std::vector<DeviceSpan> spans;
  for (std::uint64_t i = 1; i < 300; ++i) {
    const std::uint64_t early = i % 3 == 0 ? 60 : 0;
    spans.push_back(kernel(100 * i - early, 100 * i + 90));
  }
  EXPECT_THAT(expect_back(spans), ElementsAre("stream 7", "stream 7, overlapping"));
  std::shuffle(spans.begin(), spans.end(), std::mt19937_64(2));
  EXPECT_GE(expect_back(spans).size(), 2U);
}

TEST(Kernels, OfStreamsAndDevicesAreApart) {
  DeviceSpan other = kernel(100, 200);
  other.what.device = 1;
  EXPECT_THAT(expect_back({kernel(100, 200), kernel(100, 200, 8), other}),
              ElementsAre("stream 7", "stream 8", "stream 7"));
}

}  // namespace
}  // namespace layertrace::test
