// A training run that never happened: the records that hooks would have written for a model of some
// fifty layers, and the spans that attribution makes of them. What is measured on it needs neither
// Torch nor a session.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "attribute/resolver.h"
#include "attribute/span.h"
#include "record/record.h"

namespace layertrace {

// A stream of spans, kept to be played again into any sink.
class SpanLog final : public SpanSink {
 public:
  void open_lane(Lane lane, std::uint64_t tid, const std::string& name) override;
  void begin(Lane lane, const SpanBegin& span) override;
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override;
  void window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) override;
  void step(Lane lane, std::uint64_t ns, std::uint64_t index) override;
  void gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) override;

  void replay(SpanSink& sink) const;
  std::uint64_t spans() const noexcept { return spans_; }

 private:
  struct End {
    Track track;
    std::uint64_t ns;
  };
  struct Step {
    std::uint64_t ns;
    std::uint64_t index;
  };
  struct Window {
    std::uint64_t ns;
    bool on;
    std::uint64_t step;
  };
  std::vector<std::variant<SpanBegin, End, Step, Window>> events_;
  std::uint64_t spans_ = 0;
};

class MadeUpRun {
 public:
  MadeUpRun();

  const Dictionary& dictionary() const noexcept { return dictionary_; }

  // The records of so many steps on one thread, from the beginning of the recording. Ticks are
  // nanoseconds.
  std::vector<Record> records(int steps) const;

  // The same, resolved.
  SpanLog spans(int steps) const;

  // Calls of modules only, one after the other: each with a path and a flow.
  SpanLog module_calls(int calls) const;

 private:
  Dictionary dictionary_;
};

// Hands records to a consumer as the drain would: in pieces of a chunk's size.
void feed(RecordConsumer& consumer, std::span<const Record> records);

}  // namespace layertrace
