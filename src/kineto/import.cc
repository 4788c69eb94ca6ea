#include "kineto/import.h"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "kineto/byte_source.h"
#include "kineto/call_join.h"
#include "kineto/collector.h"
#include "kineto/structure.h"
#include "kineto/sweep.h"

namespace layertrace::kineto {
namespace {

// What is around comes before what is inside.
bool comes_before(const HostEvent& a, const HostEvent& b) {
  if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
  if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
  return std::tie(a.kind, a.thread, a.name, a.detail) <
         std::tie(b.kind, b.thread, b.name, b.detail);
}

std::string plural(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void note_damage(const ReadOutcome& outcome, std::vector<std::string>& notes) {
  if (!outcome.damage.empty()) {
    notes.push_back("the source is not whole: " + outcome.damage + " after " +
                    plural(outcome.json_bytes, "byte") + " of JSON, and what follows is lost");
  }
  if (outcome.cut) {
    notes.push_back("the source is cut off: its last " + plural(outcome.cut_bytes, "byte") +
                    ", and whatever was to follow, could not be read; " +
                    plural(outcome.events, "event") + " before that could");
  }
  if (outcome.broken_stretches != 0) {
    notes.push_back(plural(outcome.broken_bytes, "byte") + " of the source in " +
                    plural(outcome.broken_stretches, "place") +
                    " made no sense as JSON and were left out");
  }
}

}  // namespace

Result<ReadTrace> read_trace_json(const std::string& path, const EventReader::Progress& progress) {
  auto source = ByteSource::open(path);
  if (!source) return source.error();
  Collector collector;
  EventReader reader(**source, collector, progress);
  auto outcome = reader.read(path);
  if (!outcome) return outcome.error();

  ReadTrace read;
  read.trace = collector.finish();
  if (collector.accounts().kept() == 0) {
    return Error{"cannot import " + path, "it has no event with a beginning and an end",
                 "Name a trace that torch.profiler exported"};
  }
  read.run = collector.run();
  // Of the program nothing is known; what the trace says it is called is mostly a temporary file.
  read.run.program = std::filesystem::path(path).filename();
  read.run.imported_from = collector.is_kineto() ? "Kineto" : "Chrome JSON";
  read.notes = collector.notes();
  note_damage(*outcome, read.notes);
  read.accounts = collector.accounts();
  read.events = outcome->events;
  return read;
}

void attribute(ReadTrace& read, Dictionary& dictionary, SpanSink& sink) {
  Trace& trace = read.trace;
  if (!std::is_sorted(trace.host.begin(), trace.host.end(), comes_before))
    std::sort(trace.host.begin(), trace.host.end(), comes_before);
  const JoinedCalls joined = join_calls(trace);
  Structure structure = find_structure(trace);
  if (!structure.has_modules && read.run.imported_from == "Kineto") {
    read.notes.emplace_back(
        "the trace has no modules' calls, which torch.profiler records with with_stack=True: in "
        "their place the layers are phases and the operators in them");
  }
  Sweep(trace, std::move(structure), joined, dictionary, sink, read.accounts).run();
}

}  // namespace layertrace::kineto
