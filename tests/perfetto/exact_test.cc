// Whatever is recorded, the file gives the same spans and the same Profile, to the last bit.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include <layertrace/trace.h>

#include "attribute/fold.h"
#include "attribute/random_program.h"
#include "perfetto/profile_text.h"
#include "perfetto/proto.h"
#include "perfetto/traces.h"

namespace layertrace::test {
namespace {

std::string_view as_text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The Profile that the program had, as Pipeline::finish makes it.
Profile live_profile(const Script& script, std::uint64_t end) {
  Fold fold(script.dictionary);
  feed(script, fold, std::max<std::size_t>(script.written.size(), 1), end);
  Profile profile = fold.finish(end);
  profile.run = a_run();
  add_closing(profile.health, a_health());
  return profile;
}

Bytes write_until(const Script& script, std::uint64_t end) {
  Memory out;
  const auto writer = TraceWriter::make(script.dictionary, out, a_run());
  feed(script, *writer, 50, end);
  writer->close(a_health(), end);
  return out.bytes;
}

void expect_same(const Script& script, std::uint64_t end) {
  const Bytes bytes = write_until(script, end);
  const File file(bytes);
  const auto loaded = load(file.path());
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(profile_text(*loaded), profile_text(live_profile(script, end)));

  SpanLog live(script.dictionary);
  feed(script, live, 50, end);
  EXPECT_EQ(read(bytes).stream, live.stream());
}

TEST(Exact, RandomProgramsComeBackAsTheyWere) {
  for (unsigned seed = 1'000; seed < 1'100; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProgram program(seed);
    expect_same(program.script, program.end());
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Exact, AlsoWithPausesAndGapsAndWhatIsCut) {
  Script script({"", "a", "b"});
  ThreadScript& t = script.thread(1);
  ThreadScript& other = script.thread(2);
  t.in_window(1).on(100, 2).region(105, "epoch").enter(110, "a").make(2).gap(115, 3).leave(120);
  other.in_window(1).region(111, "load", Phase::kData).op(112, 118, "read");
  t.backward(130)
      .node(131, "Add", 1)
      .end(135)
      .gap(140, 9)
      .node(150, "Mm", 0)
      .end(151)
      .end_backward(160);
  t.step(200, 2).off(201, 3);
  other.begin_op(205, "late").end_op(215);
  t.in_window(2).on(300, 7).enter(310, "b").leave_thrown(320).step(400, 7);
  other.in_window(2).enter(330, "a").begin_op(340, "mm").op(341, 342, "copy_");
  t.enter(410, "a").op(411, 412, "mm");
  expect_same(script, 500);
  expect_same(script, 405);  // stop() read the clock before the last records came
}

TEST(Exact, AlsoWithoutAnyStepOrRecord) {
  Script nothing({"", "a"});
  expect_same(nothing, 50);
  Script one({"", "a"});
  one.thread().on(10).enter(20, "a").op(21, 22, "mm").leave(30);
  expect_same(one, 50);
}

TEST(Exact, AlsoForALaneThatIsHeardOfLate) {
  Script script({"", "a"});
  script.thread(1).on(10).enter(20, "a").leave(30).step(40, 0);
  script.thread(2);
  script.thread(3).op(1'000, 1'001, "mm");  // its first packet comes long after the first one's
  script.thread(1).step(2'000, 1);
  expect_same(script, 3'000);
}

TEST(Exact, NamesMayBeAnyBytes) {
  std::vector<std::string> names = {
      "",
      "loss",
      "step",
      std::string("a\0b", 3),
      std::string(10'000, 'y'),
      "\x01\x02\x7f\xc3\x28",
      "größe 層 😀",
      "a\r\nb\tc",
      "forward",
      "layertrace end",
      "records dropped",
      "path",
  };
  // Names and paths that read like what the format itself says.
  for (std::size_t i = 1; i < kCauseCount; ++i) {
    names.emplace_back(cause_text(static_cast<Cause>(i)));
  }
  Script script({""});
  for (const std::string& name : names) {
    if (!name.empty() && name.find('.') == std::string::npos) script.add_layer(name);
  }
  ThreadScript& t = script.thread();
  std::uint64_t at = 100;
  t.on(at);
  for (const std::string& name : names) {
    const bool is_layer = !name.empty() && name.find('.') == std::string::npos;
    t.op(at + 1, at + 2, name).region(at + 3, name).op(at + 4, at + 5, name).end_region(at + 6);
    t.enter(at + 7, is_layer ? name : "").make(1).op(at + 8, at + 9, name).leave(at + 10);
    t.node(at + 11, name, t.sequence() - 1).end(at + 12).node_of(at + 13, name, 3, 99).end(at + 14);
    at += 100;
  }
  t.step(at, 0);
  expect_same(script, at + 1);
}

// ---- What Perfetto UI makes of it ----

struct Slices {
  int begins = 0;
  int ends = 0;
  int deepest = 0;
};

// The slices of one track; those without a track of their own are not counted.
Slices slices_of_track(const Bytes& trace, std::uint64_t track) {
  Slices result;
  for (const ProtoField& packet : fields(as_text(trace))) {
    const auto inside = fields(packet.bytes);
    const ProtoField* event = find(inside, proto_id::kTrackEvent);
    if (event == nullptr) continue;
    const auto parts = fields(event->bytes);
    const ProtoField* uuid = find(parts, proto_id::kTrackUuid);
    const ProtoField* type = find(parts, proto_id::kType);
    if (uuid == nullptr || uuid->number != track || type == nullptr) continue;
    if (type->number == proto_id::kSliceBegin) ++result.begins;
    if (type->number == proto_id::kSliceEnd) ++result.ends;
    result.deepest = std::max(result.deepest, result.begins - result.ends);
  }
  return result;
}

TEST(StepTrack, HasOneStepAtATime) {
  constexpr std::uint64_t kStepTrack = 2;
  Script script({"", "a"});
  ThreadScript& t = script.thread(1);
  ThreadScript& other = script.thread(2);
  t.on(10, 0).enter(11, "a").leave(12).step(20, 0);
  other.enter(20, "a");  // between the step's end and the pause: the next step seems to begin
  t.off(21, 1);
  other.leave(25);
  t.on(30, 5).enter(31, "a").leave(32).step(40, 5).enter(41, "a").leave(42);
  const Slices steps = slices_of_track(write_until(script, 100), kStepTrack);
  EXPECT_EQ(steps.begins, steps.ends);
  EXPECT_EQ(steps.deepest, 1);
}

using Snapshot = std::map<std::uint64_t, std::uint64_t>;

// Those of the definitions' sequence: each clock's time by its id.
std::vector<Snapshot> snapshots(const Bytes& trace) {
  std::vector<Snapshot> result;
  for (const ProtoField& packet : fields(as_text(trace))) {
    const auto inside = fields(packet.bytes);
    const ProtoField* snapshot = find(inside, proto_id::kClockSnapshot);
    if (snapshot == nullptr || find(inside, proto_id::kSequence)->number != 1) continue;
    Snapshot& fresh = result.emplace_back();
    for (const ProtoField& clock : fields(snapshot->bytes)) {
      const auto parts = fields(clock.bytes);
      fresh[find(parts, proto_id::kClockId)->number] = find(parts, proto_id::kClockTime)->number;
    }
  }
  return result;
}

TEST(Clocks, AreToldAtTheStartAndAtTheEnd) {
  Script script({"", "a"});
  script.thread().on(10).enter(20, "a").leave(30).step(40, 0);
  EXPECT_EQ(snapshots(write(script)), (std::vector<Snapshot>{{{6, 10}}}));

  Memory out;
  const auto writer = TraceWriter::make(script.dictionary, out, a_run());
  writer->clocks({.boottime_ns = 5, .monotonic_ns = 4, .monotonic_raw_ns = 3, .realtime_ns = 1000});
  feed(script, *writer, 50, 50);
  writer->clocks(
      {.boottime_ns = 55, .monotonic_ns = 54, .monotonic_raw_ns = 53, .realtime_ns = 1050});
  writer->close(a_health(), 60);
  EXPECT_EQ(snapshots(out.bytes), (std::vector<Snapshot>{{{6, 10}},
                                                         {{6, 5}, {3, 4}, {5, 3}, {1, 1000}},
                                                         {{6, 55}, {3, 54}, {5, 53}, {1, 1050}}}));
  EXPECT_EQ(read(out.bytes).stream, read(write_until(script, 60)).stream);
}

// ---- Damage that random bytes seldom do ----

TEST(Damage, OfWholePacketsIsSurvived) {
  Script script({"", "a", "a.b", "(Loss)"});
  fill(script);
  const std::vector<std::string> whole = packets(as_text(write(script)));
  ASSERT_GT(whole.size(), 50u);
  std::mt19937_64 random(7);
  for (int round = 0; round < 1'500; ++round) {
    std::vector<std::string> damaged = whole;
    for (std::uint64_t changes = 1 + random() % 6; changes != 0; --changes) {
      const auto at = static_cast<std::ptrdiff_t>(random() % damaged.size());
      const std::size_t from = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged.erase(damaged.begin() + at);
          break;
        case 1:
          damaged.insert(damaged.begin() + at, damaged[from]);
          break;
        default:
          std::swap(damaged[static_cast<std::size_t>(at)], damaged[from]);
      }
    }
    std::string bytes;
    for (const std::string& packet : damaged) bytes += packet;
    const File file(bytes);
    static_cast<void>(load(file.path()));
    static_cast<void>(info(file.path()));
  }
}

TEST(Damage, DoesNotMakeTheReaderTakeMemory) {
  Script script({"", "a"});
  script.thread().on(10).enter(20, "a").leave(30).step(40, 0);
  std::string bytes(as_text(write(script)));
  // Ids of interned names, far from the others, on both sequences of the lane.
  for (const std::uint64_t sequence : {2, 3}) {
    for (std::uint64_t iid = 1 << 14; iid < std::uint64_t{1} << 40; iid *= 4) {
      const std::string name =
          number_field(proto_id::kIid, iid) + bytes_field(proto_id::kName, "x");
      bytes += bytes_field(
          proto_id::kPacket,
          number_field(proto_id::kSequence, sequence) +
              bytes_field(proto_id::kInternedData, bytes_field(proto_id::kEventNames, name)));
    }
  }
  const auto peak_kb = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
    }
    return 0UL;
  };
  const File file(bytes);
  const auto before_kb = peak_kb();
  ASSERT_TRUE(load(file.path()));
  EXPECT_LT(peak_kb() - before_kb, 32u << 10);
}

TEST(Damage, OfANameLeavesItEmpty) {
  Script script({"", "a"});
  script.thread().on(10).op(20, 25, "mm").step(40, 0);
  std::string bytes(as_text(write(script)));
  // Its id is another's: the operator refers to a name that is not there.
  const std::string name = number_field(proto_id::kIid, 1) + bytes_field(proto_id::kName, "mm");
  const std::size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 60;
  const File file(bytes);
  const auto profile = load(file.path());
  ASSERT_TRUE(profile) << profile.error().message();
  ASSERT_EQ(profile->health.unattributed.size(), 1u);
  EXPECT_EQ(profile->health.unattributed[0].names.at(0).name, "");
}

}  // namespace
}  // namespace layertrace::test
