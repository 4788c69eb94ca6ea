#include "session/span_tee.h"

namespace layertrace {

void SpanTee::open_lane(Lane lane, std::uint64_t tid, const std::string& name) {
  first_.open_lane(lane, tid, name);
  second_.open_lane(lane, tid, name);
}
void SpanTee::close_lane(Lane lane) {
  first_.close_lane(lane);
  second_.close_lane(lane);
}
void SpanTee::begin(Lane lane, const SpanBegin& span) {
  first_.begin(lane, span);
  second_.begin(lane, span);
}
void SpanTee::end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) {
  first_.end(lane, track, end_ns, by);
  second_.end(lane, track, end_ns, by);
}
void SpanTee::window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) {
  first_.window(lane, ns, on, step);
  second_.window(lane, ns, on, step);
}
void SpanTee::step(Lane lane, std::uint64_t ns, std::uint64_t index) {
  first_.step(lane, ns, index);
  second_.step(lane, ns, index);
}
void SpanTee::amounts(Lane lane, const AmountsSpan& span) {
  first_.amounts(lane, span);
  second_.amounts(lane, span);
}
void SpanTee::shapes(Lane lane, const ShapesSpan& span) {
  first_.shapes(lane, span);
  second_.shapes(lane, span);
}
void SpanTee::counting(Lane lane, const CountingSpan& span) {
  first_.counting(lane, span);
  second_.counting(lane, span);
}
void SpanTee::memory(Lane lane, const MemorySpan& span) {
  if (!has_memory_) return;
  first_.memory(lane, span);
  second_.memory(lane, span);
}
void SpanTee::use_device(const std::string& name) {
  first_.use_device(name);
  second_.use_device(name);
}
void SpanTee::count_outside_steps() {
  first_.count_outside_steps();
  second_.count_outside_steps();
}
void SpanTee::device(const DeviceSpan& span) {
  first_.device(span);
  second_.device(span);
}
void SpanTee::launch(const LaunchSpan& span) {
  first_.launch(span);
  second_.launch(span);
}
void SpanTee::event_pair(const EventSpan& span) {
  first_.event_pair(span);
  second_.event_pair(span);
}
void SpanTee::counter(const CounterSpan& sample) {
  first_.counter(sample);
  second_.counter(sample);
}
void SpanTee::gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) {
  first_.gap(lane, ns, dropped);
  second_.gap(lane, ns, dropped);
}

}  // namespace layertrace
