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
using testing::UnorderedElementsAre;

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

TEST(Kernels, BeforeTheirLaunchAreKeptAndFlagged) {
  DeviceSpan early = kernel(1'000, 2'000);
  early.launch_ns = 1'001;
  DeviceSpan sound = kernel(3'000, 4'000);
  sound.launch_ns = 3'000;
  const DeviceSpan unknown = kernel(5'000, 6'000);  // it is not known when it was asked for
  expect_back({early, sound, unknown});

  const Bytes bytes = write_devices(a_dictionary(), [&](TraceWriter& writer) {
    for (const DeviceSpan& span : {early, sound, unknown}) writer.device(span);
  });
  const auto tracks = loose_tracks(bytes);
  const auto& edges = tracks.at(kStream7).edges;
  ASSERT_EQ(edges.size(), 6U);
  EXPECT_THAT(edges[0].annotations, Contains("early"));
  EXPECT_THAT(edges[2].annotations, Not(Contains("early")));
  EXPECT_THAT(edges[4].annotations, Not(Contains("early")));
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

// ---- Calls ----

LaunchSpan a_call(std::uint64_t start_ns, std::uint32_t correlation) {
  return {.start_ns = start_ns,
          .end_ns = start_ns + 10,
          .tid = 4'711,
          .correlation = correlation,
          .name = NameId{3},
          .kind = CallKind::kAsk,
          .phase = Phase::kForward,
          .layer = LayerId{1}};
}

DeviceSpan asked_for(std::uint64_t start_ns, std::uint32_t correlation) {
  DeviceSpan span = kernel(start_ns, start_ns + 50);
  span.launch_ns = 100;
  span.launch_tid = 4'711;
  span.call = (std::uint64_t{1} << 40) + 9;
  span.what.correlation = correlation;
  return span;
}

TEST(Calls, ComeBackBeforeWhatTheyAskedFor) {
  const Dictionary dictionary = a_dictionary();
  DeviceLog put(dictionary);
  const auto tell = [](SpanSink& sink) {
    LaunchSpan wait = a_call(400, 8);
    wait.kind = CallKind::kWait;
    wait.name = NameId{4};
    wait.layer = kNoLayer;
    LaunchSpan copy = a_call(200, 0xffff'ffff);
    copy.kind = CallKind::kCopy;
    copy.name = kNoName;
    copy.tid = 0xffff'fff0;
    sink.launch(wait);
    sink.launch(a_call(100, 7));
    sink.device(asked_for(150, 7));
    sink.device(asked_for(210, 7));
    sink.launch(copy);
    sink.device(asked_for(350, 0xffff'ffff));
  };
  tell(put);
  EXPECT_THAT(read_devices(write_devices(dictionary, tell)), ElementsAreArray(put.lines));
}

TEST(Calls, AreBelowTheirThread) {
  const Bytes bytes = write_devices(a_dictionary(), [](TraceWriter& writer) {
    writer.open_lane(0, 4'710, "main");
    writer.open_lane(1, 4'711, "autograd");
    LaunchSpan stray = a_call(200, 8);
    stray.tid = 99;
    writer.launch(stray);
    writer.launch(a_call(300, 9));
    writer.launch(a_call(100, 7));
  });
  const auto tracks = loose_tracks(bytes);
  expect_no_overlap(tracks);
  std::map<std::string, std::uint64_t> parents;
  for (const auto& [uuid, track] : tracks) {
    if (track.name.starts_with("CUDA")) parents[track.name] = track.parent;
  }
  constexpr std::uint64_t kProcess = 1;
  constexpr std::uint64_t kSecondLane = 18;
  EXPECT_THAT(parents, ElementsAre(testing::Pair("CUDA calls", kSecondLane),
                                   testing::Pair("CUDA calls of thread 99", kProcess)));
}

TEST(Calls, HaveAFlowToEachOfTheirKernels) {
  DeviceSpan unasked = kernel(1'000, 1'100);
  unasked.what.correlation = 7;
  const Bytes bytes = write_devices(a_dictionary(), [&](TraceWriter& writer) {
    writer.launch(a_call(100, 7));
    writer.device(asked_for(150, 7));
    writer.device(asked_for(210, 7));
    writer.device(unasked);
  });
  const std::uint64_t correlation = (std::uint64_t{1} << 63) + 7;
  const std::uint64_t call = (std::uint64_t{1} << 40) + 9;
  const auto tracks = loose_tracks(bytes);
  const auto& edges = tracks.at(kStream7).edges;
  ASSERT_EQ(edges.size(), 6U);
  EXPECT_THAT(edges[0].flows, UnorderedElementsAre(correlation, call));
  EXPECT_THAT(edges[2].flows, UnorderedElementsAre(correlation, call));
  EXPECT_THAT(edges[4].flows, ElementsAre());
  constexpr std::uint64_t kCalls = (std::uint64_t{3} << 56) + (4'711 << 8);
  EXPECT_THAT(tracks.at(kCalls).edges.at(0).flows, ElementsAre(correlation));
}

// ---- Layers on their stream ----

EventSpan a_pair(std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t depth) {
  return {.start_ns = start_ns,
          .end_ns = end_ns,
          .host_ns = start_ns - 20,
          .phase = Phase::kForward,
          .layer = LayerId{depth % 3},
          .device = 0,
          .stream = 7,
          .depth = depth};
}

std::vector<std::string> expect_pairs_back(const std::vector<EventSpan>& pairs) {
  const Dictionary dictionary = a_dictionary();
  DeviceLog put(dictionary);
  for (const EventSpan& pair : pairs) put.event_pair(pair);
  const Bytes bytes = write_devices(dictionary, [&](TraceWriter& writer) {
    for (const EventSpan& pair : pairs) writer.event_pair(pair);
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

TEST(EventPairs, AreOnATrackForEachDepth) {
  EXPECT_THAT(
      expect_pairs_back(
          {a_pair(110, 140, 2), a_pair(105, 150, 1), a_pair(100, 200, 0), a_pair(150, 190, 1)}),
      ElementsAre("stream 7 layers", "stream 7 layers, depth 1", "stream 7 layers, depth 2"));
}

TEST(EventPairs, ThatOverlapAreKeptAsTheyAre) {
  EXPECT_THAT(expect_pairs_back({a_pair(100, 201, 0), a_pair(200, 300, 0)}),
              ElementsAre("stream 7 layers", "stream 7 layers, overlapping"));
}

TEST(EventPairs, MayBeDeeperThanTrackIdsTell) {
  EventSpan without = a_pair(500, 600, 1'000);
  without.layer = kNoLayer;
  without.device = 3;
  without.stream = 0xffff'fffe;
  without.phase = Phase::kBackward;
  expect_pairs_back({a_pair(100, 200, 300), a_pair(100, 200, 301), without});
}

// ---- Counters ----

TEST(Counters, AreInTheirDevicesGroup) {
  const Bytes bytes = write_devices(a_dictionary(), [](TraceWriter& writer) {
    writer.counter({.ns = 100, .value = 1 << 20, .device = 1});
    writer.counter({.ns = 50, .value = 7, .device = 1, .counter = DeviceCounter::kMemoryReserved});
    DeviceSpan span = kernel(500, 600);
    span.what.device = 1;
    writer.device(span);
  });
  constexpr std::uint64_t kGroup = (std::uint64_t{2} << 56) + 1;
  std::vector<std::string> names;
  for (const auto& [uuid, track] : loose_tracks(bytes)) {
    if (track.parent == kGroup) names.push_back(track.name);
  }
  EXPECT_THAT(names, UnorderedElementsAre("stream 7", "memory allocated", "memory reserved", "busy",
                                          "launch queue"));
  EXPECT_THAT(read_devices(bytes), Contains("counter 100 0 = 1048576 on 1"));
}

}  // namespace
}  // namespace layertrace::test
