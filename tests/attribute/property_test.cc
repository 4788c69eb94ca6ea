// Attribution against random programs: every node and operator is whose the program says it is.
#include <gtest/gtest.h>

#include <algorithm>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attribute/folding.h"
#include "attribute/random_program.h"
#include "attribute/resolver.h"
#include "attribute/span_log.h"
#include "record/drain.h"
#include "record/thread_buffer.h"

namespace layertrace {
namespace {

using test::fold;
using test::RandomProgram;
using test::SpanLog;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kSeeds = 100;  // ten times as slow, and nothing here depends on chance
#else
constexpr unsigned kSeeds = 400;
#endif

SpanLog resolve_all(const RandomProgram& program, std::size_t batch) {
  SpanLog log(program.script.dictionary);
  test::feed(program.script, log, batch, program.end());
  return log;
}

// The spans around a node that are its layers' backward, outermost first.
std::vector<const SpanLog::Span*> run_around(const SpanLog::Lines& lines,
                                             const SpanLog::Span& node) {
  std::vector<const SpanLog::Span*> run;
  for (int i = node.parent; i >= 0; i = lines.spans[static_cast<std::size_t>(i)].parent) {
    const SpanLog::Span& span = lines.spans[static_cast<std::size_t>(i)];
    if (span.begin.kind != SpanKind::kBackward) break;
    run.insert(run.begin(), &span);
  }
  return run;
}

void expect_node(const SpanLog::Lines& lines, const SpanLog::Span& span,
                 const RandomProgram::Expected& expected) {
  EXPECT_EQ(span.begin.layer, expected.owner.layer);
  EXPECT_EQ(span.begin.cause, expected.owner.cause);
  EXPECT_EQ(span.begin.accumulates, expected.accumulates);
  if (!expected.accumulates) {
    EXPECT_EQ(span.begin.sequence, expected.sequence + 1);
  }
  const auto run = run_around(lines, span);
  if (expected.owner.layer == kNoLayer) {
    EXPECT_TRUE(run.empty());
    return;
  }
  ASSERT_FALSE(run.empty());
  EXPECT_EQ(run.back()->begin.layer, expected.owner.layer);
  if (expected.owner.chain.empty()) return;  // a parameter's: no call is known
  ASSERT_EQ(run.size(), expected.owner.chain.size());
  for (std::size_t i = 0; i < run.size(); ++i) {
    EXPECT_EQ(run[i]->begin.layer, expected.owner.chain[i]);
    // 0: a span that a parameter's gradient had opened, and that the call's nodes joined.
    const std::uint64_t call = run[i]->begin.call;
    EXPECT_TRUE(call == expected.owner.calls[i] || call == 0);
  }
}

class RandomPrograms : public ::testing::Test {
 protected:
  // Runs the check for each seed, and says which one failed.
  template <typename Check>
  static void for_each_seed(const Check& check) {
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      check(RandomProgram(seed), seed);
      if (HasFailure()) return;
    }
  }
};

TEST_F(RandomPrograms, HaveEveryNodeAndOperatorWhereItBelongs) {
  std::size_t nodes = 0;
  std::size_t owned = 0;
  std::size_t deep = 0;
  for_each_seed([&](const RandomProgram& program, unsigned /*seed*/) {
    const SpanLog log = resolve_all(program, 64);
    std::size_t seen_nodes = 0;
    std::size_t seen_activities = 0;
    for (const auto& [track, lines] : log.tracks()) {
      EXPECT_TRUE(lines.open.empty());
      for (const SpanLog::Span& span : lines.spans) {
        if (!span.mark.empty()) continue;
        if (span.begin.kind == SpanKind::kActivity) {
          ++seen_activities;
          const auto expected = program.activities.find(span.begin.start_ns);
          ASSERT_NE(expected, program.activities.end());
          EXPECT_EQ(span.begin.layer, expected->second.owner.layer) << span.begin.start_ns;
          EXPECT_EQ(track.first, expected->second.lane);
        } else if (span.begin.kind == SpanKind::kNode) {
          ++seen_nodes;
          const auto expected = program.nodes.find(span.begin.start_ns);
          ASSERT_NE(expected, program.nodes.end());
          expect_node(lines, span, expected->second);
          EXPECT_EQ(track.first, expected->second.lane);
          owned += span.begin.layer != kNoLayer ? 1 : 0;
          deep += expected->second.owner.chain.size() > 2 ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(seen_nodes, program.nodes.size());  // each once
    EXPECT_EQ(seen_activities, program.activities.size());
    nodes += seen_nodes;
  });
  // The programs are worth the name.
  EXPECT_GT(nodes, 40 * kSeeds);
  EXPECT_GT(owned, nodes / 2);
  EXPECT_GT(deep, 5 * kSeeds);
}

TEST_F(RandomPrograms, FoldIntoSoundProfiles) {
  for_each_seed([](const RandomProgram& program, unsigned /*seed*/) {
    const Profile profile = fold(program.script, program.end());
    ASSERT_FALSE(profile.steps.empty());
    // Nothing is said but of modules that were not entered, and of each of those once.
    std::size_t not_entered = 0;
    for (const Layer& layer : profile.layers) {
      const std::string of_it = layer.path + " (" + layer.type + ") itself was never entered";
      const auto count =
          std::count_if(profile.health.notes.begin(), profile.health.notes.end(),
                        [&](const std::string& note) { return note.starts_with(of_it); });
      EXPECT_LE(count, layer.calls == 0 ? 1 : 0) << of_it;
      not_entered += static_cast<std::size_t>(count);
    }
    EXPECT_EQ(not_entered, profile.health.notes.size());
    EXPECT_EQ(profile.health.nodes, program.nodes.size());
    EXPECT_EQ(profile.health.activities, program.activities.size());
    if (!program.has_one_thread()) return;
    // On one thread every nanosecond is somebody's own, once.
    double own_ns = 0;
    for (const Layer& layer : profile.layers) {
      for (const PhaseStats& stats : layer.phases) own_ns += stats.self_host_ns.mean;
    }
    for (const PhaseStats& stats : profile.outside) own_ns += stats.self_host_ns.mean;
    double wall_ns = 0;
    for (const Step& step : profile.steps) wall_ns += static_cast<double>(step.wall_ns);
    const auto steps = static_cast<double>(profile.steps.size());
    EXPECT_NEAR(own_ns * steps, wall_ns, 1e-6 * wall_ns);
  });
}

// The resolver behind a drain, as in a session: threads come when they are first heard of.
class Behind final : public RecordConsumer {
 public:
  Behind(const Dictionary& dictionary, SpanSink& sink)
      : resolver(dictionary, sink, TickScale{}, test::kManyIntervals) {}

  void refresh() override {
    for (auto& buffer : born) drain.add(std::move(buffer));
    born.clear();
  }
  void open_lane(Lane lane, std::uint64_t key, std::uint64_t tid,
                 const std::string& name) override {
    resolver.open_lane(lane, key, tid, name);
  }
  void close_lane(Lane lane) override { resolver.close_lane(lane); }
  void index(Lane lane, std::span<const Record> records) override { resolver.index(lane, records); }
  void resolve(Lane lane, std::span<const Record> records) override {
    resolver.resolve(lane, records);
  }

  Resolver resolver;
  Drain drain{*this};
  std::vector<std::shared_ptr<ThreadBuffer>> born;
};

void write(ThreadBuffer& buffer, const Record& record) {
  if (is_begin(record.kind)) {
    ASSERT_TRUE(buffer.begin(record));
  } else if (record.kind == RecordKind::kStep || record.kind == RecordKind::kWindow) {
    ASSERT_TRUE(buffer.mark(record));
  } else {
    buffer.end(record);
  }
}

TEST_F(RandomPrograms, AreTheSameHoweverTheyAreDrained) {
  for_each_seed([](const RandomProgram& program, unsigned seed) {
    const std::string expected = resolve_all(program, 1'000'000).lanes();
    EXPECT_EQ(resolve_all(program, 1).lanes(), expected);
    std::mt19937 random(seed);
    ChunkPool pool(64);
    SpanLog log(program.script.dictionary);
    Behind behind(program.script.dictionary, log);
    // All lanes at once, so that they have the numbers that the script gave them.
    std::vector<std::shared_ptr<ThreadBuffer>> buffers;
    for (const test::ThreadScript& thread : program.script.threads()) {
      buffers.push_back(std::make_shared<ThreadBuffer>(pool, thread.key(), thread.key(), ""));
    }
    behind.born = buffers;
    const unsigned every = 1 + seed % 97;
    for (const auto& each : program.script.in_order()) {
      write(*buffers[each.lane], each.record);
      if (random() % every == 0) behind.drain.pump();
    }
    behind.drain.pump();
    behind.drain.pump();
    behind.resolver.finish(program.end());
    EXPECT_EQ(log.lanes(), expected);
  });
}

}  // namespace
}  // namespace layertrace
