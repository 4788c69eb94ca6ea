#include "torch/run.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "perfetto/trace_reader.h"

namespace layertrace::test {
// ---- The trace ----

namespace {

class Collector final : public SpanSink {
 public:
  Collector(const Dictionary& dictionary, std::vector<Span>& spans)
      : dictionary_(dictionary), spans_(spans) {}

  void open_lane(Lane lane, std::uint64_t tid, const std::string& /*name*/) override {
    lanes_.resize(std::max<std::size_t>(lanes_.size(), lane + 1));
    lanes_[lane].tid = tid;
  }
  void begin(Lane lane, const SpanBegin& begin) override {
    LaneState& state = lanes_[lane];
    auto& open = state.open[static_cast<std::size_t>(track_of(begin.kind))];
    Span span;
    span.kind = begin.kind;
    span.phase = begin.phase;
    span.cause = begin.cause;
    span.layer = begin.layer == kNoLayer ? kNobody : dictionary_.layers.at(index(begin.layer)).path;
    if (begin.name != kNoName) span.name = dictionary_.names.at(index(begin.name));
    span.call = begin.call;
    span.sequence = begin.sequence;
    span.accumulates = begin.accumulates;
    span.tid = state.tid;
    span.start_ns = begin.start_ns;
    span.around = open.empty() ? -1 : open.back();
    open.push_back(static_cast<int>(spans_.size()));
    spans_.push_back(span);
  }
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override {
    auto& open = lanes_[lane].open[static_cast<std::size_t>(track)];
    ASSERT_FALSE(open.empty()) << "an end without a begin";
    Span& span = spans_[static_cast<std::size_t>(open.back())];
    span.end_ns = end_ns;
    span.ended_by = by;
    open.pop_back();
  }
  void window(Lane /*lane*/, std::uint64_t /*ns*/, bool /*on*/, std::uint64_t /*step*/) override {}
  void step(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*index*/) override {}
  void gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t dropped) override {
    ADD_FAILURE() << dropped << " records were dropped";
  }

 private:
  struct LaneState {
    std::uint64_t tid = 0;
    std::array<std::vector<int>, 2> open;
  };
  const Dictionary& dictionary_;
  std::vector<Span>& spans_;
  std::vector<LaneState> lanes_;
};

bool is_below(const std::string& path, const std::string& ancestor) {
  if (path == kNobody) return false;
  return ancestor.empty() || path == ancestor || path.starts_with(ancestor + ".");
}

// ---- What holds for every run ----

void check_nesting(const std::vector<Span>& spans) {
  for (const Span& span : spans) {
    EXPECT_GE(span.end_ns, span.start_ns) << span.layer << ' ' << span.name;
    if (span.around < 0) continue;
    const Span& around = spans[static_cast<std::size_t>(span.around)];
    EXPECT_GE(span.start_ns, around.start_ns)
        << span.layer << ' ' << span.name << " in " << around.layer;
    EXPECT_LE(span.end_ns, around.end_ns)
        << span.layer << ' ' << span.name << " in " << around.layer;
  }
}

// With several roots each has its own first path component, so a path's prefix is its parent.
void check_figures(const Recorded& run, bool one_root) {
  const auto steps = static_cast<double>(run.profile.steps.size());
  for (const Layer& layer : run.profile.layers) {
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
      double calls = 0;
      double activities = 0;
      for (const Span& span : run.spans) {
        if (span.layer == kNobody || span.phase != static_cast<Phase>(p)) continue;
        const bool is_call = span.kind == SpanKind::kScope || span.kind == SpanKind::kBackward;
        if (is_call && span.layer == layer.path) ++calls;
        const bool below = layer.path.empty() ? span.layer.empty() || !span.layer.starts_with("(")
                                              : is_below(span.layer, layer.path);
        if (span.kind == SpanKind::kActivity && (one_root || !layer.path.empty()) && below)
          ++activities;
      }
      const std::string where =
          layer.path + " in " + std::string(phase_name(static_cast<Phase>(p)));
      EXPECT_DOUBLE_EQ(layer.phases[p].calls.mean * steps, calls) << where;
      EXPECT_DOUBLE_EQ(layer.phases[p].activities.mean * steps, activities) << where;
    }
  }
}

void check_health(const Recorded& run) {
  const Health& health = run.profile.health;
  EXPECT_EQ(health.dropped, 0U);
  EXPECT_EQ(health.cut_scopes, 0U);
  EXPECT_FALSE(health.cut);
  EXPECT_EQ(health.nodes, run.select(SpanKind::kNode).size());
  EXPECT_EQ(health.activities, run.select(SpanKind::kActivity).size());
  for (const std::string& note : health.notes) {
    const Layer& root = run.profile.layers.front();
    EXPECT_TRUE(root.calls == 0 && note.starts_with(root.name + " itself was never entered"))
        << note;
  }
  for (const Span& span : run.spans) {
    if (span.kind != SpanKind::kActivity && span.kind != SpanKind::kNode) continue;
    const bool own_phase =
        span.phase == Phase::kLoss || span.phase == Phase::kOptimizer || span.phase == Phase::kData;
    EXPECT_EQ(span.cause == Cause::kNone, span.layer != kNobody || own_phase)
        << span.name << " of " << span.layer << ", cause " << static_cast<int>(span.cause);
  }
}

}  // namespace

std::vector<Span> read_spans(const std::string& path) {
  Dictionary dictionary;
  std::vector<Span> spans;
  Collector collector(dictionary, spans);
  const auto read = read_trace(path, dictionary, collector);
  EXPECT_TRUE(read.has_value()) << read.error().message();
  return spans;
}

std::string trace_path() {
  static int number = 0;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name =
      std::string(test->test_suite_name()) + "." + test->name() + "." + std::to_string(number++);
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".pftrace";
}

Recorded record(torch::nn::Module& model, const std::function<void()>& step,
                const RunOptions& options) {
  return record(Models{{"", &model}}, step, options);
}

Recorded record(const Models& models, const std::function<void()>& step,
                const RunOptions& options) {
  const std::string path = trace_path();
  const bool callbacks_before = at::hasGlobalCallbacks();
  set_node_source(options.nodes);
  auto session = Session::start(
      models,
      {.output = path, .schedule = options.schedule, .ops = options.ops, .count = options.count});
  if (!session) {
    ADD_FAILURE() << session.error().message();
    return {};
  }
  Recorded run;
  run.options = options;
  {
    std::optional<PytorchLog> log;
    if (options.log) log.emplace();
    for (int i = 0; i < options.steps; ++i) {
      step();
      session->step();
    }
    if (log) {
      run.nodes_seen = log->nodes();
      run.ops_seen = log->activities();
    }
  }
  auto profile = session->stop();
  if (!profile) {
    ADD_FAILURE() << profile.error().message();
    return run;
  }
  EXPECT_EQ(at::hasGlobalCallbacks(), callbacks_before);
  run.profile = std::move(*profile);
  const auto loaded = load(path);
  if (!loaded) {
    ADD_FAILURE() << loaded.error().message();
    return run;
  }
  EXPECT_EQ(layers_json(run.profile), layers_json(*loaded));
  run.spans = read_spans(path);
  unlink(path.c_str());
  check_nesting(run.spans);
  check_figures(run, models.size() == 1);
  check_health(run);
  return run;
}

// ---- Reading a run ----

const Layer& Recorded::layer(const std::string& path) const {
  static const Layer kEmpty;
  const Layer* found = profile.find(path);
  EXPECT_NE(found, nullptr) << "no layer " << path;
  return found != nullptr ? *found : kEmpty;
}

double Recorded::calls(const std::string& path, Phase phase) const {
  return layer(path).phase(phase).calls.mean;
}

std::vector<Span> Recorded::select(SpanKind kind) const {
  std::vector<Span> result;
  std::copy_if(spans.begin(), spans.end(), std::back_inserter(result),
               [&](const Span& s) { return s.kind == kind; });
  return result;
}

Strings Recorded::scopes() const {
  Strings result;
  for (const Span& span : select(SpanKind::kScope)) {
    result.push_back(span.phase == Phase::kForward
                         ? span.layer
                         : span.layer + " " + std::string(phase_name(span.phase)));
  }
  return result;
}

Strings Recorded::nodes() const {
  Strings result;
  for (const Span& span : select(SpanKind::kNode))
    result.push_back(span.name + " of " + span.layer);
  return result;
}

Strings Recorded::regions() const {
  Strings result;
  for (const Span& span : select(SpanKind::kRegion)) {
    result.push_back(span.name.empty() ? std::string(phase_name(span.phase)) : span.name);
  }
  return result;
}

Strings Recorded::activities(const std::string& path, Phase phase, bool below) const {
  Strings result;
  for (const Span& span : select(SpanKind::kActivity)) {
    if (span.phase == phase && (below ? is_below(span.layer, path) : span.layer == path))
      result.push_back(span.name);
  }
  return result;
}

// ---- Both sides ----

void expect_node_owners(const Recorded& run, const Makers& makers) {
  const auto short_name = [](const std::string& name) {
    const std::size_t last =
        name.find('<') == std::string::npos ? name.rfind("::") : std::string::npos;
    return last == std::string::npos ? name : name.substr(last + 2);
  };
  std::map<std::uint64_t, Strings> expected;  // by thread, in order
  std::map<std::uint64_t, Strings> found;
  const bool only_called = !run.options.ops && run.options.nodes == NodeSource::kCallbacks;
  for (const NodeSeen& seen : run.nodes_seen) {
    if (only_called && !seen.called) continue;
    const bool accumulates =
        dynamic_cast<const torch::autograd::AccumulateGrad*>(seen.node.get()) != nullptr;
    const std::string number = accumulates ? "-" : std::to_string(seen.node->sequence_nr());
    expected[seen.tid].push_back(short_name(seen.name) + " #" + number + " of " +
                                 makers.of(*seen.node));
  }
  for (const Span& span : run.select(SpanKind::kNode)) {
    const std::string number = span.accumulates ? "-" : std::to_string(span.sequence - 1);
    found[span.tid].push_back(span.name + " #" + number + " of " + span.layer);
  }
  EXPECT_FALSE(expected.empty()) << "no backward ran";
  EXPECT_EQ(found.size(), expected.size()) << "threads that ran nodes";
  for (const auto& [tid, nodes] : expected) EXPECT_EQ(lines(found[tid]), lines(nodes));
}

void expect_owners(const Recorded& run, const Makers& makers) {
  expect_node_owners(run, makers);
  if (!run.profile.run.ops) return;
  std::map<std::uint64_t, Strings> expected;
  std::map<std::uint64_t, Strings> found;
  for (const OpSeen& op : run.ops_seen) {
    if (op.node != nullptr) expected[op.tid].push_back(op.name + " of " + makers.of(*op.node));
  }
  for (const Span& span : run.select(SpanKind::kActivity)) {
    if (span.phase != Phase::kBackward || span.cause == Cause::kBetweenNodes) continue;
    found[span.tid].push_back(span.name + " of " + span.layer);
  }
  for (const auto& [tid, ops] : expected) EXPECT_EQ(lines(found[tid]), lines(ops));
}

void for_each_way(const std::function<void(const RunOptions&)>& test) {
  for (const NodeSource nodes : {NodeSource::kAuto, NodeSource::kCallbacks}) {
    for (const bool ops : {true, false}) {
      SCOPED_TRACE(std::string(nodes == NodeSource::kAuto ? "interposed engine" : "callbacks") +
                   (ops ? ", operators" : ", no operators"));
      test({.ops = ops, .nodes = nodes});
    }
  }
}

}  // namespace layertrace::test
