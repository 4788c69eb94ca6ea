// Whatever devices did, in whatever order it comes: the file gives the same spans, in that order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "perfetto/device_spans.h"

namespace layertrace::test {
namespace {

class RandomSpans {
 public:
  explicit RandomSpans(unsigned seed) : random_(seed) {}

  DeviceSpan activity() {
    DeviceSpan span;
    span.start_ns = time();
    span.end_ns = span.start_ns + below(3'000);
    if (chance(5)) span.launch_ns = span.start_ns - below(2'000);
    if (chance(5)) span.launch_tid = number32();
    span.phase = phase();
    span.layer = layer();
    if (span.layer == kNoLayer && chance(2)) span.cause = Cause::kNoLaunch;
    if (chance(4)) span.cause = Cause::kEarlierGraph;
    if (chance(3)) span.call = (1 + below(1U << 23)) << 40 | below(1'000);
    DeviceActivity& what = span.what;
    what.kind = static_cast<DeviceKind>(below(3));
    what.graph_node = chance(4) ? random_() : 0;
    what.correlation = number32();
    what.name = NameId{static_cast<std::uint32_t>(below(3))};
    what.device = static_cast<std::uint32_t>(below(2));
    what.context = static_cast<std::uint32_t>(below(3));
    what.stream = stream();
    if (what.kind == DeviceKind::kKernel) {
      what.registers = static_cast<std::uint16_t>(below(256));
      what.occupancy = static_cast<float>(below(65)) / static_cast<float>(1 + below(64));
      what.shared_bytes = chance(2) ? number32() : 0;
      for (std::uint32_t& size : what.grid) size = number32();
      for (std::uint32_t& size : what.block) size = static_cast<std::uint32_t>(below(1'025));
    } else {
      what.bytes = random_();
    }
    return span;
  }

  LaunchSpan call() {
    LaunchSpan span;
    span.start_ns = time();
    span.end_ns = span.start_ns + below(500);
    span.tid = chance(3) ? number32() : 4'711;
    span.correlation = number32();
    span.name = chance(5) ? kNoName : NameId{3 + static_cast<std::uint32_t>(below(2))};
    span.kind = static_cast<CallKind>(below(3));
    span.phase = phase();
    span.layer = layer();
    return span;
  }

  EventSpan pair() {
    EventSpan span;
    span.start_ns = time();
    span.end_ns = span.start_ns + below(3'000);
    span.host_ns = span.start_ns - below(1'000);
    span.phase = phase();
    span.layer = layer();
    span.device = static_cast<std::uint32_t>(below(2));
    span.stream = stream();
    span.depth = static_cast<std::uint32_t>(chance(20) ? below(1'000) : below(4));
    return span;
  }

  CounterSpan sample() {
    return {.ns = time(),
            .value = chance(9) ? std::numeric_limits<std::uint64_t>::max() : random_() >> 24,
            .device = static_cast<std::uint32_t>(below(2)),
            .counter = static_cast<DeviceCounter>(below(2))};
  }

  std::uint64_t below(std::uint64_t end) { return random_() % end; }

 private:
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  std::uint64_t time() { return 10'000 + below(100'000); }
  std::uint32_t number32() { return static_cast<std::uint32_t>(random_()); }
  std::uint32_t stream() { return chance(10) ? number32() : 7; }
  Phase phase() { return static_cast<Phase>(below(kPhaseCount)); }
  LayerId layer() {
    const std::uint64_t number = below(4);
    return number == 3 ? kNoLayer : LayerId{static_cast<std::uint32_t>(number)};
  }

  std::mt19937_64 random_;
};

void tell(SpanSink& sink, unsigned seed) {
  RandomSpans random(seed);
  for (int i = 0; i < 400; ++i) {
    switch (random.below(4)) {
      case 0:
        sink.device(random.activity());
        break;
      case 1:
        sink.launch(random.call());
        break;
      case 2:
        sink.event_pair(random.pair());
        break;
      default:
        sink.counter(random.sample());
        break;
    }
  }
}

TEST(DeviceExact, RandomSpansComeBackAsTheyWere) {
  const Dictionary dictionary = a_dictionary();
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    DeviceLog put(dictionary);
    tell(put, seed);
    const Bytes bytes =
        write_devices(dictionary, [seed](TraceWriter& writer) { tell(writer, seed); });
    ASSERT_THAT(read_devices(bytes), testing::ElementsAreArray(put.lines));
    expect_no_overlap(loose_tracks(bytes));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DeviceExact, DamageOfWholePacketsIsSurvived) {
  const Bytes bytes = write_devices(a_dictionary(), [](TraceWriter& writer) { tell(writer, 1); });
  const std::vector<std::string> whole =
      packets({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> damaged = whole;
    for (std::uint64_t changes = 1 + random() % 40; changes != 0; --changes) {
      const std::size_t at = random() % damaged.size();
      if (random() % 2 == 0) {
        damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        std::swap(damaged[at], damaged[random() % damaged.size()]);
      }
    }
    std::string text;
    for (const std::string& packet : damaged) text += packet;
    const File file(text);
    static_cast<void>(load(file.path()));
    static_cast<void>(info(file.path()));
  }
}

}  // namespace
}  // namespace layertrace::test
