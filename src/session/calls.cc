// calls(): every module call that a trace holds, as a table.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <layertrace/trace.h>

#include "attribute/span.h"
#include "perfetto/trace_reader.h"
#include "report/ledger.h"
#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace {
namespace {

struct CallRow {
  SpanBegin span;
  Lane lane = 0;
  std::uint64_t end_ns = 0;
  EndedBy ended_by = EndedBy::kCut;
  NameId input = kNoName;
  NameId output = kNoName;
  std::uint64_t kernels = 0;
  std::uint64_t kernel_ns = 0;
};

// Keeps the calls that are asked for, as long as there are not too many.
class CallCollector final : public SpanSink {
 public:
  CallCollector(const Dictionary& dictionary, const TableOptions& options)
      : dictionary_(dictionary),
        options_(options),
        most_(options.limit > 0 ? options.limit : kMostCalls) {}

  void open_lane(Lane lane, std::uint64_t tid, const std::string& name) override {
    if (lanes_.size() <= lane) lanes_.resize(lane + std::size_t{1});
    lanes_[lane].name = name.empty() ? fmt::format("thread {}", tid) : name;
  }
  void begin(Lane lane, const SpanBegin& span) override {
    if (track_of(span.kind) != Track::kScopes) return;
    const bool is_call = span.kind == SpanKind::kScope || span.kind == SpanKind::kBackward;
    if (lanes_.size() <= lane) lanes_.resize(lane + std::size_t{1});
    lanes_[lane].open.push_back(is_call && is_asked_for(span.layer) ? keep(lane, span) : kNotKept);
  }
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override {
    if (track != Track::kScopes || lane >= lanes_.size() || lanes_[lane].open.empty()) return;
    const std::size_t row = lanes_[lane].open.back();
    lanes_[lane].open.pop_back();
    if (row == kNotKept) return;
    rows_[row].end_ns = end_ns;
    rows_[row].ended_by = by;
  }
  void window(Lane /*lane*/, std::uint64_t ns, bool on, std::uint64_t step) override {
    if (on) steps_.emplace_back(ns, step);
  }
  void step(Lane /*lane*/, std::uint64_t ns, std::uint64_t index) override {
    steps_.emplace_back(ns, index + 1);
  }
  void gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) override {}
  void shapes(Lane lane, const ShapesSpan& span) override {
    if (lane >= lanes_.size()) return;
    const auto& open = lanes_[lane].open;
    const auto call = std::find_if(open.rbegin(), open.rend(), [&](std::size_t row) {
      return row != kNotKept && rows_[row].span.layer == span.layer;
    });
    if (call != open.rend())
      (span.is_output ? rows_[*call].output : rows_[*call].input) = span.shapes;
  }
  void use_device(const std::string& name) override { has_gpu_ = !name.empty(); }
  void device(const DeviceSpan& span) override {
    const auto calls = by_place_.find(place(span.layer, span.phase));
    if (calls == by_place_.end()) return;
    // The last one that had begun; or one around it, where a module calls itself.
    const auto begin = calls->second.begin();
    auto each = std::upper_bound(
        begin, calls->second.end(), span.launch_ns,
        [&](std::uint64_t ns, std::size_t row) { return ns < rows_[row].span.start_ns; });
    while (each != begin) {
      CallRow& row = rows_[*--each];
      const bool is_inside = row.end_ns == 0 || span.launch_ns <= row.end_ns;
      // What adds a gradient to a parameter serves no single call.
      if (!is_inside || (span.call != 0 && span.call != row.span.call)) continue;
      ++row.kernels;
      row.kernel_ns += span.end_ns - std::min(span.end_ns, span.start_ns);
      return;
    }
  }

  bool has_more() const noexcept { return has_more_; }

  Table table() {
    std::ranges::stable_sort(rows_, {}, [](const CallRow& row) { return row.span.start_ns; });
    std::ranges::stable_sort(steps_);
    tables::Sheet<CallRow> sheet("calls", std::move(rows_));
    sheet.integer("step", "", [&](const CallRow& row) { return step_of(row); })
        .text("path",
              [&](const CallRow& row) { return tables::shown_path(layer(row).path, options_); })
        .text("type", [&](const CallRow& row) { return layer(row).type; })
        .text("phase", [](const CallRow& row) { return phase_name(row.span.phase); })
        .integer("call", "", [](const CallRow& row) { return row.span.call; })
        .detail()
        .text("thread", [&](const CallRow& row) { return lanes_[row.lane].name; })
        .detail()
        .integer("start_ns", "ns", [](const CallRow& row) { return row.span.start_ns; })
        .detail()
        .integer(
            "host_ns", "ns",
            [](const CallRow& row) { return row.end_ns - std::min(row.end_ns, row.span.start_ns); })
        .integer("self_kernels", "", [&](const CallRow& row) { return if_gpu(row.kernels); })
        .integer("self_kernel_ns", "ns", [&](const CallRow& row) { return if_gpu(row.kernel_ns); })
        .text("input", [&](const CallRow& row) { return name(row.input); })
        .text("output", [&](const CallRow& row) { return name(row.output); })
        .text("ended_by", [](const CallRow& row) { return ended_by_name(row.ended_by); })
        .detail();
    return sheet.take();
  }

 private:
  static constexpr auto kNotKept = static_cast<std::size_t>(-1);

  struct OpenLane {
    std::string name = {};
    std::vector<std::size_t> open = {};  // rows
  };

  static std::uint64_t place(LayerId layer, Phase phase) {
    return std::uint64_t{index(layer)} * kPhaseCount + static_cast<std::uint64_t>(phase);
  }

  static std::string_view ended_by_name(EndedBy by) {
    if (by == EndedBy::kException) return "exception";
    return by == EndedBy::kCut ? "cut" : "exit";
  }

  bool is_asked_for(LayerId id) const {
    if (id == kNoLayer || index(id) >= dictionary_.layers.size()) return false;
    // Up to the layer that is asked for, or to the root.
    const std::size_t count = dictionary_.layers.size();
    int levels = 0;
    for (LayerId each = id; index(each) < count; each = dictionary_.layers[index(each)].parent) {
      const auto& layer = dictionary_.layers[index(each)];
      const bool is_top = layer.parent == kNoLayer;
      const bool is_start = options_.module.empty() ? is_top : layer.path == options_.module;
      if (is_start) return options_.depth < 0 || levels <= options_.depth;
      if (is_top || std::cmp_greater(++levels, count)) return false;
    }
    return false;
  }

  std::size_t keep(Lane lane, const SpanBegin& span) {
    if (rows_.size() >= most_) {
      has_more_ = true;
      return kNotKept;
    }
    rows_.push_back({.span = span, .lane = lane});
    by_place_[place(span.layer, span.phase)].push_back(rows_.size() - 1);
    return rows_.size() - 1;
  }

  const LayerDef& layer(const CallRow& row) const {
    return dictionary_.layers[index(row.span.layer)];
  }
  TableValue name(NameId id) const {
    return id == kNoName || index(id) >= dictionary_.names.size()
               ? TableValue()
               : TableValue(dictionary_.names[index(id)]);
  }
  TableValue if_gpu(std::uint64_t value) const {
    return has_gpu_ ? tables::cell(value) : TableValue();
  }
  // The last one that had begun.
  TableValue step_of(const CallRow& row) const {
    const auto after = std::ranges::upper_bound(steps_, row.span.start_ns, {},
                                                &std::pair<std::uint64_t, std::uint64_t>::first);
    return after == steps_.begin() ? TableValue() : tables::cell(std::prev(after)->second);
  }

  const Dictionary& dictionary_;
  const TableOptions& options_;
  const std::size_t most_;
  std::vector<OpenLane> lanes_;
  std::vector<CallRow> rows_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_place_;  // rows
  std::vector<std::pair<std::uint64_t, std::uint64_t>> steps_;  // when they began, and which
  bool has_gpu_ = false;
  bool has_more_ = false;
};

}  // namespace

Result<Table> calls(const std::string& path, const TableOptions& options) {
  if (options.trainable) {
    return Error{"cannot choose calls by what is trainable", "single calls do not tell of it",
                 "Ask for a module's calls"};
  }
  Dictionary dictionary;
  CallCollector collector(dictionary, options);
  const auto summary = read_trace(path, dictionary, collector);
  if (!summary) return summary.error();
  if (!options.module.empty() && std::ranges::find(dictionary.layers, options.module,
                                                   &LayerDef::path) == dictionary.layers.end()) {
    return Error{"cannot list the calls of " + options.module, "no layer has this path",
                 "`layertrace tree " + path + "` shows those that exist"};
  }
  if (collector.has_more() && options.limit == 0) {
    return Error{"cannot list the calls of " + path,
                 fmt::format("there are more than {}", kMostCalls),
                 "Ask for one module's, for fewer levels, or give a limit"};
  }
  Table listed = collector.table();
  listed.note = report::simulation_note(summary->run, /*ascii=*/false);
  return tables::chosen(std::move(listed), options);
}

}  // namespace layertrace
