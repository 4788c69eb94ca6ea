// What was counted is in the trace: where a person clicks on it, and to be folded again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <layertrace/trace.h>

#include "attribute/fold.h"
#include "perfetto/format.h"
#include "perfetto/profile_text.h"
#include "perfetto/proto.h"
#include "perfetto/traces.h"

namespace layertrace::test::counted {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kLarge = (std::uint64_t{1} << 63) + 5;
constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

constexpr LayerId kRoot{0};
constexpr LayerId kA{1};
constexpr NameId kMm{0};
constexpr NameId kAdd{1};
constexpr NameId kInput{2};
constexpr NameId kOutput{3};
constexpr NameId kOther{4};

Dictionary a_dictionary() {
  Dictionary dictionary;
  for (const char* path : {"", "a", "b"}) {
    LayerDef layer;
    layer.path = path;
    layer.name = layer.type = "Module";
    if (!layer.path.empty()) layer.parent = kRoot;
    dictionary.layers.push_back(layer);
  }
  dictionary.names = {"aten::mm", "aten::add", "float32[2, 3]", "float32[2, 4]", "other"};
  return dictionary;
}

// What was counted and the ends, one line each, in the order they came.
class CountedLog final : public SpanSink {
 public:
  explicit CountedLog(const Dictionary& dictionary) : dictionary_(dictionary) {}

  void open_lane(Lane /*lane*/, std::uint64_t /*tid*/, const std::string& /*name*/) override {}
  void begin(Lane /*lane*/, const SpanBegin& /*span*/) override {}
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override {
    const char* how = by == EndedBy::kExit ? "" : by == EndedBy::kException ? " thrown" : " cut";
    add("{} end {} @{}{}", lane, track == Track::kScopes ? "scope" : "op", end_ns, how);
  }
  void window(Lane /*lane*/, std::uint64_t /*ns*/, bool /*on*/, std::uint64_t /*step*/) override {}
  void step(Lane lane, std::uint64_t ns, std::uint64_t index) override {
    add("{} step {} @{}", lane, index, ns);
  }
  void gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) override {}
  void amounts(Lane lane, const AmountsSpan& span) override {
    const OpAmounts& a = span.amounts;
    add("{} {} {} {} {}: {} {} {} {} {} {} {} format {}{}{} @{}", lane, name(a.op),
        phase_name(span.phase), path(span.layer), static_cast<int>(span.cause), a.flops,
        a.aux_flops, a.flops_causal, a.bytes, a.activations, a.fvcore_flops, a.fvcore_activations,
        a.format, a.is_call ? "" : " rest", a.is_uncounted ? " uncounted" : "", span.ns);
  }
  void shapes(Lane lane, const ShapesSpan& span) override {
    add("{} {} {} {}", lane, path(span.layer), span.is_output ? "gives" : "takes",
        name(span.shapes));
  }
  void counting(Lane lane, const CountingSpan& span) override {
    add("{} key {} {} @{}", lane, span.key, span.is_counted ? "counted" : "alike", span.ns);
  }
  void memory(Lane lane, const MemorySpan& span) override {
    add("{} {} {} at {} of {} {} {} @{}", lane, span.is_freed ? "free" : "take", span.bytes,
        span.address, span.device, phase_name(span.phase), path(span.layer), span.ns);
  }

  std::vector<std::string> lines;

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    lines.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::string name(NameId id) const { return id == kNoName ? "-" : dictionary_.names[index(id)]; }
  std::string path(LayerId layer) const {
    return layer == kNoLayer ? "-" : "'" + dictionary_.layers[index(layer)].path + "'";
  }

  const Dictionary& dictionary_;
};

using Program = std::function<void(SpanSink&)>;

Bytes trace_of(const Program& program) {
  const Dictionary dictionary = a_dictionary();
  Memory out;
  const auto writer = TraceWriter::make(dictionary, out, a_run());
  for (const Lane lane : {0, 1}) writer->open_lane(lane, 100 + lane, "thread");
  program(*writer);
  writer->close(a_health(), kEnd);
  return out.bytes;
}

std::vector<std::string> read_back(const Bytes& bytes) {
  const File file(bytes);
  Dictionary dictionary;
  CountedLog log(dictionary);
  EXPECT_TRUE(read_trace(file.path(), dictionary, log));
  return log.lines;
}

std::vector<std::string> read_back(const Program& program) { return read_back(trace_of(program)); }

SpanBegin op(std::uint64_t ns, NameId name, LayerId layer = kA) {
  return {.start_ns = ns,
          .kind = SpanKind::kActivity,
          .phase = Phase::kForward,
          .layer = layer,
          .name = name};
}
SpanBegin scope(std::uint64_t ns, LayerId layer) {
  return {.start_ns = ns, .kind = SpanKind::kScope, .phase = Phase::kForward, .layer = layer};
}
AmountsSpan amounts(std::uint64_t ns, const OpAmounts& amounts, LayerId layer = kA) {
  return {ns, Phase::kForward, Cause::kNone, layer, amounts};
}
void end_op(SpanSink& sink, std::uint64_t ns, Lane lane = 0) {
  sink.end(lane, Track::kActivities, ns, EndedBy::kExit);
}
void end_scope(SpanSink& sink, std::uint64_t ns, EndedBy by = EndedBy::kExit) {
  sink.end(0, Track::kScopes, ns, by);
}
// As attribution tells a call: part by part.
void tell(SpanSink& sink, std::uint64_t ns, const OpAmounts& whole, Lane lane = 0,
          LayerId layer = kA) {
  for (const auto part : {AmountsPart::kFlops, AmountsPart::kBytes, AmountsPart::kOthers}) {
    OpAmounts told = unpack_amounts(amounts_record(whole, part, 0));
    if (part == AmountsPart::kOthers) told.fvcore_activations = whole.fvcore_activations;
    sink.amounts(lane, amounts(ns, told, layer));
  }
}

// ---- As Perfetto has it ----

struct Packet {
  std::uint64_t sequence = 0;
  std::uint64_t type = 0;
  std::uint64_t track = 0;                       // where it says
  std::map<std::string, std::uint64_t> numbers;  // annotations that are numbers
  std::vector<std::string> others;               // names of those that are not
};

constexpr std::uint32_t kUintValue = 3;      // DebugAnnotation
constexpr std::uint32_t kBoolValue = 2;      // DebugAnnotation
constexpr std::uint64_t kInstant = 3;        // TrackEvent.Type
constexpr std::uint64_t kCounter = 4;        // TrackEvent.Type
constexpr std::uint32_t kCounterValue = 30;  // TrackEvent

std::string_view as_text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<Packet> events(const Bytes& trace) {
  std::vector<Packet> result;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> names;
  for (const ProtoField& field : fields(as_text(trace))) {
    const auto packet = fields(field.bytes);
    const ProtoField* sequence = find(packet, proto_id::kSequence);
    if (sequence == nullptr || sequence->number == 1) continue;
    if (const ProtoField* interned = find(packet, proto_id::kInternedData)) {
      for (const ProtoField& each : fields(interned->bytes)) {
        if (each.id != proto_id::kAnnotationNames) continue;
        const auto entry = fields(each.bytes);
        names[{sequence->number, find(entry, proto_id::kIid)->number}] =
            find(entry, proto_id::kName)->bytes;
      }
    }
    const ProtoField* event = find(packet, proto_id::kTrackEvent);
    if (event == nullptr) continue;
    Packet& fresh = result.emplace_back();
    fresh.sequence = sequence->number;
    for (const ProtoField& part : fields(event->bytes)) {
      if (part.id == proto_id::kType) fresh.type = part.number;
      if (part.id == proto_id::kTrackUuid) fresh.track = part.number;
      if (part.id == kCounterValue) fresh.numbers["value"] = part.number;
      if (part.id != proto_id::kAnnotations) continue;
      const auto parts = fields(part.bytes);
      const std::string& name =
          names.at({sequence->number, find(parts, proto_id::kAnnotationName)->number});
      const ProtoField* number = find(parts, kUintValue);
      if (number == nullptr) number = find(parts, kBoolValue);
      if (number != nullptr) {
        fresh.numbers[name] = number->number;
      } else {
        fresh.others.push_back(name);
      }
    }
  }
  return result;
}

std::vector<Packet> of_type(const Bytes& trace, std::uint64_t type) {
  std::vector<Packet> result = events(trace);
  std::erase_if(result, [&](const Packet& packet) { return packet.type != type; });
  return result;
}

// ---- Operators ----

TEST(Amounts, AreToldAtTheEndOfTheirOperator) {
  const Bytes trace = trace_of([](SpanSink& sink) {
    sink.window(0, 10, true, 0);
    sink.begin(0, op(20, kMm));
    tell(sink, 29,
         {.op = kMm,
          .flops = kLarge,
          .aux_flops = kLargest,
          .flops_causal = 7,
          .bytes = kLarge + 1,
          .activations = kLarge + 2,
          .fvcore_flops = kLarge + 3,
          .fvcore_activations = kLarge + 4,
          .format = 4,
          .is_uncounted = true});
    end_op(sink, 30);
  });
  EXPECT_THAT(
      read_back(trace),
      ElementsAre(fmt::format("0 aten::mm forward 'a' 0: {} {} 7 {} {} {} {} format 4 "
                              "uncounted @30",
                              kLarge, kLargest, kLarge + 1, kLarge + 2, kLarge + 3, kLarge + 4),
                  "0 end op @30"));
  EXPECT_THAT(of_type(trace, kInstant), IsEmpty());
  const std::vector<Packet> ends = of_type(trace, proto_id::kSliceEnd);
  ASSERT_EQ(ends.size(), 2u);  // and the step's
  EXPECT_THAT(
      ends[0].numbers,
      UnorderedElementsAre(Pair("flops", kLarge), Pair("aux_flops", kLargest),
                           Pair("flops_causal", 7), Pair("bytes", kLarge + 1),
                           Pair("activations", kLarge + 2), Pair("fvcore_flops", kLarge + 3),
                           Pair("fvcore_activations", kLarge + 4), Pair("uncounted", 1)));
  EXPECT_THAT(ends[0].others, ElementsAre("format"));
}

TEST(Amounts, SayNoMoreThanThereIs) {
  const Bytes trace = trace_of([](SpanSink& sink) {
    sink.begin(0, op(20, kMm));
    tell(sink, 29, {.op = kMm, .flops = 12, .flops_causal = 12});
    end_op(sink, 30);
  });
  EXPECT_THAT(
      read_back(trace),
      ElementsAre("0 aten::mm forward 'a' 0: 12 0 12 0 0 0 0 format 8 @30", "0 end op @30"));
  EXPECT_THAT(of_type(trace, proto_id::kSliceEnd)[0].numbers, ElementsAre(Pair("flops", 12)));
}

TEST(Amounts, OfAnOperatorInsideAnother) {
  const auto program = [](SpanSink& sink) {
    sink.begin(0, op(20, kMm));
    sink.begin(0, op(21, kAdd));
    tell(sink, 22, {.op = kAdd, .aux_flops = 3});
    end_op(sink, 23);
    sink.begin(0, op(24, kMm));
    end_op(sink, 25);
    tell(sink, 26, {.op = kMm, .flops = 8});
    end_op(sink, 30);
  };
  EXPECT_THAT(read_back(program),
              ElementsAre("0 aten::add forward 'a' 0: 0 3 0 0 0 0 0 format 8 @23", "0 end op @23",
                          "0 end op @25", "0 aten::mm forward 'a' 0: 8 0 0 0 0 0 0 format 8 @30",
                          "0 end op @30"));
  EXPECT_THAT(of_type(trace_of(program), kInstant), IsEmpty());
}

TEST(Amounts, OfAnOperatorWithoutASlice) {
  const Bytes trace = trace_of([](SpanSink& sink) {
    sink.begin(0, op(20, kMm));
    tell(sink, 25, {.op = kAdd, .flops = 5, .bytes = 6});  // it only called others
    tell(sink, 28, {.op = kMm, .flops = 8});
    end_op(sink, 30);
    AmountsSpan stray = amounts(40, {.op = kAdd, .flops = 9}, kNoLayer);
    stray.cause = Cause::kNoScope;
    stray.phase = Phase::kOther;
    sink.amounts(1, stray);
  });
  EXPECT_THAT(read_back(trace),
              ElementsAre("0 aten::add forward 'a' 0: 5 0 0 6 0 0 0 format 8 @25",
                          "0 aten::mm forward 'a' 0: 8 0 0 0 0 0 0 format 8 @30", "0 end op @30",
                          "1 aten::add other - 1: 9 0 0 0 0 0 0 format 8 @40"));
  const std::vector<Packet> instants = of_type(trace, kInstant);
  ASSERT_EQ(instants.size(), 2u);
  EXPECT_THAT(instants[0].numbers,
              UnorderedElementsAre(Pair("flops", 5), Pair("flops_causal", 0), Pair("bytes", 6)));
  EXPECT_THAT(instants[0].others, ElementsAre("path"));
  EXPECT_THAT(instants[1].others, ElementsAre("unattributed"));
}

// One that was not recorded has the name of the one around it: two calls, not one.
TEST(Amounts, OfACallInsideOneOfTheSameName) {
  const auto program = [](SpanSink& sink) {
    sink.begin(0, op(20, kMm));
    tell(sink, 25, {.op = kMm, .flops = 5});
    tell(sink, 25, {.op = kMm, .flops = 8});
    end_op(sink, 30);
  };
  EXPECT_THAT(read_back(program),
              ElementsAre("0 aten::mm forward 'a' 0: 5 0 0 0 0 0 0 format 8 @25",
                          "0 aten::mm forward 'a' 0: 8 0 0 0 0 0 0 format 8 @30", "0 end op @30"));
}

TEST(Amounts, OfACallWhoseFirstPartWasDropped) {
  EXPECT_THAT(
      read_back([](SpanSink& sink) {
        sink.begin(0, op(20, kMm));
        sink.amounts(0, amounts(25, {.op = kMm, .bytes = 5, .is_call = false}));
        end_op(sink, 30);
      }),
      ElementsAre("0 aten::mm forward 'a' 0: 0 0 0 5 0 0 0 format 8 rest @30", "0 end op @30"));
}

// The operator is told after what ran inside it: its begin is where it was all the same.
TEST(Amounts, LeaveTheTimesOfSlicesAlone) {
  const Bytes trace = trace_of([](SpanSink& sink) {
    tell(sink, 25, {.op = kAdd, .flops = 5});
    sink.begin(0, op(20, kMm));
    end_op(sink, 30);
  });
  EXPECT_THAT(read(trace).stream, testing::HasSubstr("aten::mm forward a [20,"));
}

// A step that ends on another thread, between what is told and the operator's end.
TEST(Amounts, BelongToTheirStep) {
  EXPECT_THAT(read_back([](SpanSink& sink) {
                sink.window(0, 10, true, 0);
                sink.begin(1, op(20, kMm));
                tell(sink, 25, {.op = kMm, .flops = 5}, 1);
                sink.step(0, 26, 0);
                end_op(sink, 30, 1);
                sink.begin(1, op(31, kMm));
                sink.step(0, 36, 1);
                tell(sink, 35, {.op = kMm, .flops = 6}, 1);  // its clock is late
                end_op(sink, 37, 1);
              }),
              ElementsAre("1 aten::mm forward 'a' 0: 5 0 0 0 0 0 0 format 8 @25", "0 step 0 @26",
                          "1 end op @30", "0 step 1 @36",
                          "1 aten::mm forward 'a' 0: 6 0 0 0 0 0 0 format 8 @35", "1 end op @37"));
}

// ---- Modules ----

TEST(Shapes, AreToldAtTheEndOfTheirCall) {
  const Bytes trace = trace_of([](SpanSink& sink) {
    sink.begin(0, scope(10, kRoot));
    sink.shapes(0, {11, kRoot, kInput, false});
    sink.begin(0, scope(12, kA));
    sink.shapes(0, {13, kA, kInput, false});
    sink.begin(0, scope(14, kA));
    end_scope(sink, 15);
    sink.shapes(0, {16, kA, kOutput, true});
    end_scope(sink, 17);
    sink.shapes(0, {18, kRoot, kOther, true});
    end_scope(sink, 19);
  });
  EXPECT_THAT(read_back(trace),
              ElementsAre("0 end scope @15", "0 'a' takes float32[2, 3]",
                          "0 'a' gives float32[2, 4]", "0 end scope @17",
                          "0 '' takes float32[2, 3]", "0 '' gives other", "0 end scope @19"));
  EXPECT_THAT(of_type(trace, kInstant), IsEmpty());
  const std::vector<Packet> ends = of_type(trace, proto_id::kSliceEnd);
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_THAT(ends[0].others, IsEmpty());
  EXPECT_THAT(ends[1].others, ElementsAre("input", "output"));
  EXPECT_THAT(ends[2].others, ElementsAre("input", "output"));
}

TEST(Shapes, OfACallThatAnExceptionEnded) {
  EXPECT_THAT(read_back([](SpanSink& sink) {
                sink.begin(0, scope(12, kA));
                sink.shapes(0, {13, kA, kInput, false});
                end_scope(sink, 17, EndedBy::kException);
              }),
              ElementsAre("0 'a' takes float32[2, 3]", "0 end scope @17 thrown"));
}

TEST(Shapes, OfACallThatIsNotThere) {
  const auto program = [](SpanSink& sink) {
    sink.begin(0, scope(12, kRoot));
    sink.shapes(0, {13, kA, kInput, false});
    end_scope(sink, 17);
  };
  EXPECT_THAT(read_back(program), ElementsAre("0 'a' takes float32[2, 3]", "0 end scope @17"));
  EXPECT_EQ(of_type(trace_of(program), kInstant).size(), 1u);
}

// ---- Stretches and memory ----

TEST(Counting, ComesBack) {
  const Bytes trace = trace_of([](SpanSink& sink) {
    sink.window(0, 10, true, 0);
    sink.counting(0, {10, kLarge, true});
    sink.counting(1, {12, 0, false});
    sink.step(0, 20, 0);
  });
  EXPECT_THAT(read_back(trace), ElementsAre(fmt::format("0 key {} counted @10", kLarge),
                                            "1 key 0 alike @12", "0 step 0 @20"));
  for (const Packet& instant : of_type(trace, kInstant)) EXPECT_EQ(instant.track, 7u);  // counting
}

TEST(BlocksOfMemory, ComeBackAndAreSummedUp) {
  const MemorySpan first{
      .ns = 20, .phase = Phase::kForward, .layer = kA, .address = kLarge, .bytes = 100};
  MemorySpan second{.ns = 19, .device = 1, .address = 0, .bytes = kLarge};
  MemorySpan unknown{.ns = 21, .address = 77, .bytes = 1'000, .is_freed = true};
  MemorySpan again = first;  // it was given back while nobody looked
  again.ns = 22;
  again.bytes = 30;
  MemorySpan freed = again;
  freed.ns = 23;
  freed.is_freed = true;
  const Bytes trace = trace_of([&](SpanSink& sink) {
    sink.memory(0, first);
    sink.memory(1, second);
    sink.memory(0, unknown);
    sink.memory(1, again);
    sink.memory(0, freed);
  });
  EXPECT_THAT(
      read_back(trace),
      ElementsAre(fmt::format("0 take 100 at {} of {} forward 'a' @20", kLarge, kHostDevice),
                  fmt::format("1 take {} at 0 of 1 other - @19", kLarge),
                  fmt::format("0 free 1000 at 77 of {} other - @21", kHostDevice),
                  fmt::format("1 take 30 at {} of {} forward 'a' @22", kLarge, kHostDevice),
                  fmt::format("0 free 30 at {} of {} forward 'a' @23", kLarge, kHostDevice)));
  std::map<std::uint64_t, std::vector<std::uint64_t>> values;
  for (const Packet& each : of_type(trace, kCounter))
    values[each.track].push_back(each.numbers.at("value"));
  EXPECT_THAT(values, UnorderedElementsAre(Pair(testing::_, ElementsAre(100, 100, 30, 0)),
                                           Pair(testing::_, ElementsAre(kLarge))));
  EXPECT_NE(as_text(trace).find("memory allocated (host)"), std::string_view::npos);
}

// ---- All of it ----

TEST(Counted, IsNotInATraceWithoutIt) {
  Script script({"", "a", "a.b", "(Loss)"});
  fill(script);
  const Bytes trace = write(script);
  EXPECT_THAT(read_back(trace), testing::Each(testing::HasSubstr(" ")));
  for (const Packet& each : events(trace)) {
    EXPECT_LT(each.sequence, 1u << 24);
    EXPECT_FALSE(each.numbers.contains("flops"));
  }
}

// A program that counts on two threads, each thing at a time of its own.
class RandomCounting {
 public:
  explicit RandomCounting(unsigned seed) : random_(seed) {}

  void run(SpanSink& sink) {
    sink.window(0, ++now_, true, 0);
    for (int i = 0; i < 600; ++i) act(sink, static_cast<Lane>(below(2)));
    sink.step(0, ++now_, step_);
    for (Lane lane : {0, 1}) {
      while (!ops_[lane].empty()) end_op(sink, lane);
      while (!scopes_[lane].empty()) end_scope(sink, lane);
    }
  }
  std::uint64_t now() const { return now_; }

 private:
  void act(SpanSink& sink, Lane lane) {
    now_ += 1 + below(3);
    std::vector<SpanBegin>& ops = ops_[lane];
    switch (below(9)) {
      case 0:
        if (below(4) == 0) sink.step(0, now_, step_++);
        break;
      case 1:
        if (below(4) == 0) sink.counting(lane, {now_, below(3), below(2) == 0});
        break;
      case 2:
        if (ops.empty() && scopes_[lane].size() < 4) begin_scope(sink, lane);
        break;
      case 3:
        if (ops.empty() && !scopes_[lane].empty()) end_scope(sink, lane);
        break;
      case 4:
      case 5:
        if (ops.size() < 4) {
          ops.push_back(op(now_, name(), layer(lane)));
          sink.begin(lane, ops.back());
        }
        break;
      case 6:
        tell(sink, now_, some_amounts(name()), lane, layer(lane));
        break;
      default:
        if (ops.empty()) break;
        if (below(4) != 0) {
          tell(sink, now_, some_amounts(ops.back().name), lane, ops.back().layer);
          for (std::uint64_t more = below(3); more != 0 && lane == 1; --more) act(sink, 0);
        }
        ++now_;
        end_op(sink, lane);
        break;
    }
  }

  void begin_scope(SpanSink& sink, Lane lane) {
    scopes_[lane].push_back(scope(now_, LayerId{static_cast<std::uint32_t>(below(3))}));
    sink.begin(lane, scopes_[lane].back());
    shaped_[lane].push_back(below(3) != 0);
    if (shaped_[lane].back()) sink.shapes(lane, {now_, scopes_[lane].back().layer, name(), false});
  }
  void end_scope(SpanSink& sink, Lane lane) {
    if (shaped_[lane].back()) sink.shapes(lane, {now_, scopes_[lane].back().layer, name(), true});
    shaped_[lane].pop_back();
    sink.end(lane, Track::kScopes, ++now_, EndedBy::kExit);
    scopes_[lane].pop_back();
  }
  void end_op(SpanSink& sink, Lane lane) {
    sink.end(lane, Track::kActivities, ++now_, EndedBy::kExit);
    ops_[lane].pop_back();
  }
  OpAmounts some_amounts(NameId op) {
    return {.op = op,
            .flops = below(1'000),
            .aux_flops = below(1'000),
            .flops_causal = below(1'000),
            .bytes = below(1'000),
            .activations = below(1'000),
            .fvcore_flops = below(1'000),
            .fvcore_activations = below(1'000),
            .format = static_cast<std::uint8_t>(below(9)),
            .is_uncounted = below(9) == 0};
  }
  LayerId layer(Lane lane) const {
    return scopes_[lane].empty() ? kNoLayer : scopes_[lane].back().layer;
  }
  NameId name() { return NameId{static_cast<std::uint32_t>(below(5))}; }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  std::mt19937_64 random_;
  std::uint64_t now_ = 100;
  std::uint64_t step_ = 0;
  std::vector<SpanBegin> scopes_[2];
  std::vector<bool> shaped_[2];  // of the scopes
  std::vector<SpanBegin> ops_[2];
};

// ---- Layers ----

// The flops that the ends of slices on the scopes' track tell, and -1 where none does.
std::vector<std::int64_t> flops_at_scope_ends(const Bytes& trace) {
  std::vector<std::int64_t> flops;
  for (const Packet& end : of_type(trace, proto_id::kSliceEnd)) {
    if (end.track != 0 || end.sequence != format::scope_sequence(0)) continue;
    const auto found = end.numbers.find("flops");
    flops.push_back(found == end.numbers.end() ? -1 : static_cast<std::int64_t>(found->second));
    if (found != end.numbers.end()) {
      EXPECT_EQ(end.numbers.at("macs"), found->second / 2);
    }
  }
  return flops;
}

TEST(Layers, TellAtTheirEndWhatWasComputedInside) {
  const Program program = [](SpanSink& sink) {
    sink.window(0, 10, true, 0);
    sink.begin(0, scope(20, kRoot));
    sink.begin(0, scope(21, kA));
    for (const std::uint64_t ns : {30, 40}) {
      sink.begin(0, op(ns, kMm));
      tell(sink, ns + 9, {.op = kMm, .flops = 100});
      end_op(sink, ns + 9);
    }
    end_scope(sink, 50);
    sink.amounts(0, amounts(51, {.op = kMm, .flops = 7}, kRoot));
    sink.amounts(0, amounts(52, {.op = kMm, .flops = 1000}, kNoLayer));  // nobody's
    end_scope(sink, 60);
    sink.begin(0, scope(70, kA));  // another call, not counted
    end_scope(sink, 80);
  };
  EXPECT_THAT(flops_at_scope_ends(trace_of(program)), ElementsAre(200, 207, -1));
  // Which is not counted again when it is read.
  const std::vector<std::string> lines = read_back(program);
  EXPECT_EQ(std::ranges::count_if(
                lines,
                [](const std::string& line) { return line.find("aten::mm") != std::string::npos; }),
            4);
}

TEST(Layers, KeepWhatIsComputedAgainApartFromTheirBackward) {
  const Bytes trace = trace_of([](SpanSink& sink) {
    const auto tells = [&](std::uint64_t ns, Phase phase, std::uint64_t flops) {
      sink.amounts(0, {ns, phase, Cause::kNone, kA, {.op = kMm, .flops = flops}});
    };
    sink.window(0, 10, true, 0);
    sink.begin(
        0, {.start_ns = 20, .kind = SpanKind::kBackward, .phase = Phase::kBackward, .layer = kA});
    sink.begin(0, {.start_ns = 21,
                   .kind = SpanKind::kNode,
                   .phase = Phase::kBackward,
                   .layer = kA,
                   .name = kMm});
    sink.begin(0,
               {.start_ns = 22, .kind = SpanKind::kScope, .phase = Phase::kRecompute, .layer = kA});
    tells(23, Phase::kRecompute, 30);
    end_scope(sink, 24);
    tells(25, Phase::kBackward, 60);
    end_scope(sink, 26);
    end_scope(sink, 27);
  });
  EXPECT_THAT(flops_at_scope_ends(trace), ElementsAre(30, -1, 60));
}

TEST(Counted, SurvivesDamage) {
  const std::vector<std::string> whole =
      packets(as_text(trace_of([](SpanSink& sink) { RandomCounting(3).run(sink); })));
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> damaged = whole;
    for (std::uint64_t changes = 1 + random() % 20; changes != 0; --changes)
      std::swap(damaged[random() % damaged.size()], damaged[random() % damaged.size()]);
    std::string bytes;
    for (const std::string& packet : damaged) bytes += packet;
    for (std::uint64_t changes = random() % 4; changes != 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const File file(bytes);
    static_cast<void>(load(file.path()));
  }
}

TEST(Counted, GivesTheSameProfile) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Dictionary dictionary = a_dictionary();
    Fold fold(dictionary);
    for (const Lane lane : {0, 1}) fold.open_lane(lane, 100 + lane, "thread");
    RandomCounting program(seed);
    program.run(fold);
    Profile live = fold.finish(kEnd);
    live.run = a_run();
    add_closing(live.health, a_health());

    const File file(trace_of([&](SpanSink& sink) { RandomCounting(seed).run(sink); }));
    const auto loaded = load(file.path());
    ASSERT_TRUE(loaded) << loaded.error().message();
    ASSERT_EQ(counted_text(*loaded), counted_text(live));
    ASSERT_EQ(profile_text(*loaded), profile_text(live));
  }
}

}  // namespace
}  // namespace layertrace::test::counted
