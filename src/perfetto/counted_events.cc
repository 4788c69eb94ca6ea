#include "perfetto/counted_events.h"

namespace layertrace {
namespace {

OpAmounts amounts_of(const Event& event, NameId op) {
  OpAmounts amounts = event.amounts;
  amounts.op = op;
  amounts.flops = event.flops.value_or(0);
  amounts.flops_causal = event.flops_causal.value_or(amounts.flops);
  amounts.bytes = event.what.bytes;
  amounts.is_call = !event.partial;
  return amounts;
}

MemorySpan memory_of(const Event& event, std::uint64_t ns) {
  return {.ns = ns,
          .phase = event.phase(),
          .layer = event.layer,
          .device = event.device,
          .address = event.address.value_or(0),
          .bytes = event.what.bytes,
          .is_freed = event.freed};
}

}  // namespace

bool CountedEvents::on_packet(Lane lane, std::uint64_t ns, protozero::ConstBytes interned,
                              protozero::ConstBytes bytes) {
  if (sequences_.size() <= lane) sequences_.resize(std::size_t{lane} + 1);
  SequenceState& sequence = sequences_[lane];
  if (interned.data != nullptr) parser_.on_interned_data(sequence, interned);
  if (bytes.data == nullptr) return false;
  const Event event = parser_.parse(sequence, bytes);
  if (event.flops) {
    const OpAmounts amounts = amounts_of(event, parser_.name(sequence, event.name_iid));
    sink_.amounts(lane, {ns, event.phase(), event.cause, event.layer, amounts});
  } else if (event.address) {
    sink_.memory(lane, memory_of(event, ns));
  } else if (event.key) {
    sink_.counting(lane, {ns, *event.key, event.counted});
  } else {
    shapes(lane, ns, event.layer, event);
  }
  return true;
}

void CountedEvents::on_end(Lane lane, const SpanBegin& slice, std::uint64_t ns, const Event& end) {
  // A layer's are what its operators tell, added up.
  if (end.flops && slice.kind == SpanKind::kActivity) {
    sink_.amounts(lane, {ns, slice.phase, slice.cause, slice.layer, amounts_of(end, slice.name)});
  }
  shapes(lane, ns, slice.layer, end);
}

void CountedEvents::shapes(Lane lane, std::uint64_t ns, LayerId layer, const Event& event) {
  if (layer == kNoLayer) return;
  if (event.input) sink_.shapes(lane, {ns, layer, parser_.name(*event.input), false});
  if (event.output) sink_.shapes(lane, {ns, layer, parser_.name(*event.output), true});
}

}  // namespace layertrace
