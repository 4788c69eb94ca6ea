#include "session/pipeline.h"

#include <utility>
#include <vector>

namespace layertrace {

Pipeline::Pipeline(std::shared_ptr<Recording> recording, ByteSink& out, const RunInfo& run,
                   TickScale scale, std::size_t max_intervals)
    : recording_(std::move(recording)),
      run_(run),
      scale_(scale),
      fold_(dictionary_),
      writer_(TraceWriter::make(dictionary_, out, run)),
      tee_(fold_, *writer_),
      resolver_(dictionary_, tee_, scale, max_intervals),
      intake_(*this),
      drain_(intake_) {}

std::uint64_t Pipeline::pump() {
  const std::uint64_t records = drain_.pump();
  if (records != 0) writer_->flush();
  return records;
}

Profile Pipeline::finish(std::uint64_t now_ticks, const Health& given) {
  pump();  // a thread that is new to the drain is read from the next time on
  while (pump() != 0) {
  }
  drain_.mark_open_gaps(now_ticks);
  resolver_.finish(now_ticks);
  const std::uint64_t end_ns = scale_.to_ns(now_ticks);
  Profile profile = fold_.finish(end_ns);
  profile.run = run_;

  Health closing = given;
  fill_health(closing, profile);
  writer_->close(closing, end_ns);

  Health& health = profile.health;
  health.emitted = closing.emitted;
  health.recorded = closing.recorded;
  health.dropped = closing.dropped;
  health.scope_cost_ns = closing.scope_cost_ns;
  health.op_cost_ns = closing.op_cost_ns;
  health.writer_cpu_ns = closing.writer_cpu_ns;
  health.tracing_share = closing.tracing_share;
  health.notes.insert(health.notes.end(), closing.notes.begin(), closing.notes.end());
  return profile;
}

void Pipeline::fill_health(Health& health, const Profile& profile) const {
  health.recorded = drain_.recorded();
  health.dropped = drain_.dropped() + recording_->lost();
  health.emitted = health.recorded + health.dropped;
  std::uint64_t wall_ns = 0;
  for (const Step& step : profile.steps) wall_ns += step.wall_ns;
  if (wall_ns != 0) {
    health.tracing_share = (static_cast<double>(scopes_) * health.scope_cost_ns +
                            static_cast<double>(ops_) * health.op_cost_ns) /
                           static_cast<double>(wall_ns);
  }
}

void Pipeline::Intake::refresh() {
  Pipeline& p = pipeline_;
  std::vector<std::shared_ptr<ThreadBuffer>> threads;
  p.recording_->take_new_threads(threads);
  for (auto& thread : threads) p.drain_.add(std::move(thread));
  p.recording_->definitions().copy_new(p.dictionary_.layers, p.dictionary_.parameters);
  NameTable::instance().copy_new(p.dictionary_.names);
}

void Pipeline::Intake::open_lane(Lane lane, std::uint64_t key, std::uint64_t tid,
                                 const std::string& name) {
  pipeline_.resolver_.open_lane(lane, key, tid, name);
}
void Pipeline::Intake::close_lane(Lane lane) { pipeline_.resolver_.close_lane(lane); }
void Pipeline::Intake::index(Lane lane, std::span<const Record> records) {
  pipeline_.resolver_.index(lane, records);
}

void Pipeline::Intake::resolve(Lane lane, std::span<const Record> records) {
  for (const Record& record : records) {
    if (record.kind == RecordKind::kWindow) recording_ = record.flags != 0;
    if (!recording_ || !is_begin(record.kind))
      continue;  // of the recorded steps, not of the warm-up
    ++(record.kind == RecordKind::kOpBegin ? pipeline_.ops_ : pipeline_.scopes_);
  }
  pipeline_.resolver_.resolve(lane, records);
}

void Pipeline::Tee::open_lane(Lane lane, std::uint64_t tid, const std::string& name) {
  first_.open_lane(lane, tid, name);
  second_.open_lane(lane, tid, name);
}
void Pipeline::Tee::close_lane(Lane lane) {
  first_.close_lane(lane);
  second_.close_lane(lane);
}
void Pipeline::Tee::begin(Lane lane, const SpanBegin& span) {
  first_.begin(lane, span);
  second_.begin(lane, span);
}
void Pipeline::Tee::end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) {
  first_.end(lane, track, end_ns, by);
  second_.end(lane, track, end_ns, by);
}
void Pipeline::Tee::window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) {
  first_.window(lane, ns, on, step);
  second_.window(lane, ns, on, step);
}
void Pipeline::Tee::step(Lane lane, std::uint64_t ns, std::uint64_t index) {
  first_.step(lane, ns, index);
  second_.step(lane, ns, index);
}
void Pipeline::Tee::gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) {
  first_.gap(lane, ns, dropped);
  second_.gap(lane, ns, dropped);
}

}  // namespace layertrace
