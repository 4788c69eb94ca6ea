// Spans as text: one line each, indented as they are nested, so that a test reads as the trace
// does.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attribute/records.h"
#include "attribute/resolver.h"
#include "attribute/span.h"

namespace layertrace::test {

class SpanLog final : public SpanSink {
 public:
  struct Span {
    SpanBegin begin;
    std::uint64_t end_ns = 0;
    std::uint64_t inside_end_ns = 0;  // of what is directly inside, the latest
    EndedBy by = EndedBy::kExit;
    bool ended = false;
    int parent = -1;  // index into the track's spans
    int depth = 0;
    std::string mark;  // not a span but a step, a gap, …
  };
  struct Lines {
    std::vector<Span> spans;
    std::vector<int> open;
  };

  explicit SpanLog(const Dictionary& dictionary) : dictionary_(&dictionary) {}

  void open_lane(Lane lane, std::uint64_t tid, const std::string& name) override {
    calls_ += fmt::format("lane {} tid {} '{}'\n", lane, tid, name);
  }
  void begin(Lane lane, const SpanBegin& span) override {
    Lines& lines = tracks_[{lane, track_of(span.kind)}];
    Span fresh;
    fresh.begin = span;
    fresh.parent = lines.open.empty() ? -1 : lines.open.back();
    fresh.depth = static_cast<int>(lines.open.size());
    if (fresh.parent >= 0 && span.start_ns < lines.spans[index_of(fresh.parent)].begin.start_ns) {
      ADD_FAILURE() << "begins before its parent: " << line(fresh, true);
    }
    lines.open.push_back(static_cast<int>(lines.spans.size()));
    lines.spans.push_back(fresh);
    calls_ += fmt::format("begin {} {}\n", lane, line(fresh, true));
  }
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override {
    Lines& lines = tracks_[{lane, track}];
    ASSERT_FALSE(lines.open.empty()) << "an end without its begin";
    const int number = lines.open.back();
    lines.open.pop_back();
    Span& span = lines.spans[index_of(number)];
    span.end_ns = end_ns;
    span.by = by;
    span.ended = true;
    if (end_ns < span.begin.start_ns)
      ADD_FAILURE() << "ends before it begins: " << line(span, true);
    if (span.inside_end_ns > end_ns) {
      ADD_FAILURE() << "something inside ends at " << span.inside_end_ns << ": "
                    << line(span, true);
    }
    if (span.parent >= 0) {
      std::uint64_t& latest_ns = lines.spans[index_of(span.parent)].inside_end_ns;
      latest_ns = std::max(latest_ns, end_ns);
    }
    calls_ += fmt::format("end {} {} {} {}\n", lane, static_cast<int>(track), end_ns,
                          static_cast<int>(by));
  }
  void window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) override {
    mark(lane, fmt::format("recording {} step {} @{}", on ? "on" : "off", step, ns));
  }
  void step(Lane lane, std::uint64_t ns, std::uint64_t index) override {
    mark(lane, fmt::format("step {} @{}", index, ns));
  }
  void gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) override {
    mark(lane, fmt::format("gap of {} @{}", dropped, ns));
  }

  // The lane's scopes, regions and nodes, with the steps between them.
  std::string scopes(Lane lane = 0) const { return track({lane, Track::kScopes}, false); }
  // The same with the calls that tie forward and backward: #1, #2… on the first lane.
  std::string calls(Lane lane = 0) const { return track({lane, Track::kScopes}, true); }
  // The lane's activities.
  std::string ops(Lane lane = 0) const { return track({lane, Track::kActivities}, false); }
  // Everything in the order it came.
  const std::string& stream() const { return calls_; }
  // Everything, lane by lane: the order between lanes does not count.
  std::string lanes() const {
    std::string result;
    for (const auto& [key, lines] : tracks_) {
      result += fmt::format("lane {}\n{}", key.first, track(key, true));
    }
    return result;
  }

  const std::map<std::pair<Lane, Track>, Lines>& tracks() const { return tracks_; }
  std::string path(LayerId layer) const {
    const std::string& path = dictionary_->layers[layertrace::index(layer)].path;
    return path.empty() ? "." : path;
  }
  std::string name(NameId id) const {
    return id == kNoName ? "loss" : dictionary_->names[layertrace::index(id)];
  }

 private:
  static std::size_t index_of(int number) { return static_cast<std::size_t>(number); }

  void mark(Lane lane, std::string text) {
    Lines& lines = tracks_[{lane, Track::kScopes}];
    calls_ += fmt::format("{} {}\n", lane, text);
    Span span;
    span.depth = static_cast<int>(lines.open.size());
    span.mark = std::move(text);
    lines.spans.push_back(std::move(span));
  }

  std::string track(std::pair<Lane, Track> key, bool with_calls) const {
    std::string result;
    const auto found = tracks_.find(key);
    if (found == tracks_.end()) return result;
    for (const Span& span : found->second.spans) {
      result += std::string(2 * static_cast<std::size_t>(span.depth), ' ');
      result += (span.mark.empty() ? line(span, with_calls) : span.mark) + "\n";
    }
    return result;
  }

  std::string line(const Span& span, bool with_calls) const {
    static constexpr const char* kCauses[kCauseCount] = {
        "",          "no scope",       "thread without scope", "made outside",  "made before",
        "forgotten", "unknown thread", "foreign leaf",         "between nodes", "after layers",
        "inferred"};
    const SpanBegin& b = span.begin;
    const std::string owner =
        b.layer != kNoLayer && b.cause == Cause::kInferred ? path(b.layer) + " (inferred)"
        : b.layer != kNoLayer                              ? path(b.layer)
        : b.cause != Cause::kNone ? fmt::format("<{}>", kCauses[static_cast<int>(b.cause)])
                                  : "-";
    std::string text;
    switch (b.kind) {
      case SpanKind::kScope:
      case SpanKind::kBackward:
        text = fmt::format("{} {}", phase_name(b.phase), owner);
        if (b.kind == SpanKind::kBackward && b.phase != Phase::kBackward) text += " (backward)";
        break;
      case SpanKind::kNode:
        text = fmt::format("node {} {}", name(b.name), owner);
        if (b.accumulates) text += " accumulates";
        if (with_calls && b.sequence != 0) text += fmt::format(" ({})", b.sequence - 1);
        break;
      case SpanKind::kRegion:
        text = fmt::format("region {} {}", name(b.name), phase_name(b.phase));
        if (b.layer != kNoLayer || b.cause != Cause::kNone) text += " in " + owner;
        break;
      case SpanKind::kActivity:
        text = fmt::format("{} {} {}", name(b.name), phase_name(b.phase), owner);
        break;
    }
    if (with_calls && b.call != 0) {
      const std::uint64_t lane = (b.call >> 40) - 1;
      const std::uint64_t number = b.call & ((std::uint64_t{1} << 40) - 1);
      text += lane == 0 ? fmt::format(" #{}", number) : fmt::format(" #{}/{}", lane, number);
    }
    text += fmt::format(" [{},", b.start_ns);
    text += span.ended ? fmt::format("{})", span.end_ns) : std::string("…");
    if (span.by == EndedBy::kException) text += " thrown";
    if (span.by == EndedBy::kCut) text += " cut";
    return text;
  }

  const Dictionary* dictionary_;
  std::map<std::pair<Lane, Track>, Lines> tracks_;
  std::string calls_;
};

// A raw string literal without its first line break and its indentation.
inline std::string text(std::string_view literal) {
  if (!literal.empty() && literal.front() == '\n') literal.remove_prefix(1);
  const std::size_t indent = literal.find_first_not_of(' ');
  std::string result;
  while (!literal.empty()) {
    const std::size_t end = literal.find('\n');
    std::string_view line = literal.substr(0, end);
    literal.remove_prefix(end == std::string_view::npos ? literal.size() : end + 1);
    if (line.find_first_not_of(' ') == std::string_view::npos) continue;
    line.remove_prefix(std::min(indent, line.find_first_not_of(' ')));
    result += std::string(line) + "\n";
  }
  return result;
}

constexpr std::size_t kManyIntervals = 1 << 16;

// Hands the script to a resolver, `batch` records at a time, and to the end: what is open at `end`
// is cut there.
inline void feed(const Script& script, SpanSink& sink, std::size_t batch, std::uint64_t end,
                 std::size_t max_intervals = kManyIntervals, bool infers = false) {
  Resolver resolver(script.dictionary, sink, TickScale{}, max_intervals, infers);
  for (const ThreadScript& thread : script.threads()) {
    resolver.open_lane(thread.lane(), thread.key(), thread.key(), "");
  }
  const auto all = script.in_order();
  for (std::size_t first = 0; first < all.size(); first += batch) {
    const std::size_t last = std::min(all.size(), first + batch);
    for (std::size_t i = first; i < last; ++i) resolver.index(all[i].lane, {&all[i].record, 1});
    for (std::size_t i = first; i < last; ++i) resolver.resolve(all[i].lane, {&all[i].record, 1});
  }
  resolver.finish(end);
}

constexpr std::uint64_t kEnd = 1'000'000;

// The script's spans. However the records are cut into batches, they must be the same.
inline SpanLog resolve(const Script& script, std::uint64_t end = kEnd,
                       std::size_t max_intervals = kManyIntervals, bool infers = false) {
  SpanLog log(script.dictionary);
  feed(script, log, std::max<std::size_t>(script.written.size(), 1), end, max_intervals, infers);
  for (const std::size_t batch : {1, 3}) {
    SpanLog other(script.dictionary);
    feed(script, other, batch, end, max_intervals, infers);
    EXPECT_EQ(other.stream(), log.stream()) << "in batches of " << batch;
  }
  return log;
}

}  // namespace layertrace::test
