// What was counted, from a trace: instants of a lane's own sequence, and what the end of a slice
// tells of it.
#pragma once

#include <cstdint>
#include <vector>

#include "attribute/span.h"
#include "perfetto/event_parser.h"

namespace layertrace {

class CountedEvents {
 public:
  CountedEvents(EventParser& parser, SpanSink& sink) : parser_(parser), sink_(sink) {}

  // A packet of the lane's sequence. Returns whether it had an event.
  bool on_packet(Lane lane, std::uint64_t ns, protozero::ConstBytes interned,
                 protozero::ConstBytes bytes);
  // A slice of the lane is about to end.
  void on_end(Lane lane, const SpanBegin& slice, std::uint64_t ns, const Event& end);

 private:
  void shapes(Lane lane, std::uint64_t ns, LayerId layer, const Event& event);

  EventParser& parser_;
  SpanSink& sink_;
  std::vector<SequenceState> sequences_;  // by lane
};

}  // namespace layertrace
