#include "session/pipeline.h"

#include <limits>
#include <utility>
#include <vector>

#include "attribute/metric_list.h"
#include "roofline/rates.h"

namespace layertrace {

Pipeline::Pipeline(std::shared_ptr<Recording> recording, ByteSink& out, const RunInfo& run,
                   TickScale scale, std::size_t max_intervals, std::size_t fold_bytes, bool infers)
    : recording_(std::move(recording)),
      run_(run),
      scale_(scale),
      fold_(dictionary_, fold_bytes),
      writer_(TraceWriter::make(dictionary_, out, run)),
      tee_(fold_, *writer_),
      resolver_(dictionary_, tee_, scale, max_intervals, infers),
      device_resolver_(dictionary_, resolver_, tee_, scale, recording_->session()),
      intake_(*this),
      drain_(intake_) {}

void Pipeline::use(DeviceCapture& device) {
  constexpr std::size_t kPlaces = std::size_t{1} << 17;
  device_ = &device;
  run_.device = device.name();
  tee_.use_device(run_.device);
  resolver_.remember_places(kPlaces);
}

std::uint64_t Pipeline::pump(std::uint64_t horizon_ticks) {
  if (device_ != nullptr) device_->drain(device_resolver_, /*all=*/false);
  std::uint64_t records = 0;
  do {
    records += drain_.pump(horizon_ticks);
    if (device_ != nullptr) device_resolver_.settle(drain_.reached_ticks());
  } while (drain_.reached_ticks() < horizon_ticks);
  if (records != 0 || device_ != nullptr) writer_->flush();
  return records;
}

void Pipeline::take(const std::vector<DeviceSample>& samples) {
  for (const DeviceSample& sample : samples) device_resolver_.sample(sample);
}

void Pipeline::add_metric(std::uint64_t now_ticks, const MetricValue& metric) {
  put_metric(metrics_, metric);
  writer_->metric(scale_.to_ns(now_ticks), metric);
  writer_->flush();
}

Profile Pipeline::snapshot(std::uint64_t now_ticks, const Health& given,
                           const DescribeDevice& describe) {
  pump(now_ticks);
  Profile profile = Fold(fold_).finish(scale_.to_ns(now_ticks));
  profile.run = run_;
  profile.metrics = metrics_;
  if (const auto bytes = recording_->optimizer_state_bytes())
    profile.optimizer_state_bytes = static_cast<double>(*bytes);
  if (describe) profile.device = describe(profile);
  roofline::fill_rates(profile);
  Health closing = given;
  fill_health(closing, profile);
  add_closing(profile.health, closing);
  return profile;
}

Profile Pipeline::finish(std::uint64_t now_ticks, const Health& given,
                         const DescribeDevice& describe) {
  while (pump(std::numeric_limits<std::uint64_t>::max()) != 0) {
  }
  drain_.mark_open_gaps(now_ticks);
  if (device_ != nullptr) {
    device_->drain(device_resolver_, /*all=*/true);
    intake_.refresh();
    device_resolver_.settle(std::numeric_limits<std::uint64_t>::max());
    device_resolver_.finish();
  }
  resolver_.finish(now_ticks);
  const std::uint64_t end_ns = scale_.to_ns(now_ticks);
  Profile profile = fold_.finish(end_ns);
  profile.run = run_;
  profile.metrics = metrics_;
  if (const auto bytes = recording_->optimizer_state_bytes())
    profile.optimizer_state_bytes = static_cast<double>(*bytes);
  if (describe) profile.device = describe(profile);
  roofline::fill_rates(profile);

  Health closing = given;
  fill_health(closing, profile);
  writer_->describe_device(profile.device);
  writer_->describe_optimizers(profile.optimizer_state_bytes);
  writer_->close(closing, end_ns);

  add_closing(profile.health, closing);
  return profile;
}

void Pipeline::fill_health(Health& health, const Profile& profile) const {
  if (device_ != nullptr) health.gpu = device_->health();
  health.recorded = drain_.recorded();
  health.dropped = drain_.dropped() + recording_->lost();
  health.emitted = health.recorded + health.dropped;
  const double wall_ns = profile.step_ns.mean * static_cast<double>(profile.step_count);
  const Begun& begun = profile.steps_marked ? in_steps_ : since_step_;
  if (wall_ns != 0) {
    health.tracing_share = (static_cast<double>(begun.scopes) * health.scope_cost_ns +
                            static_cast<double>(begun.ops) * health.op_cost_ns) /
                           wall_ns;
  }
}

void Pipeline::Intake::add_threads() {
  std::vector<std::shared_ptr<ThreadBuffer>> threads;
  pipeline_.recording_->take_new_threads(threads);
  for (auto& thread : threads) pipeline_.drain_.add(std::move(thread));
}

void Pipeline::Intake::refresh() {
  Pipeline& p = pipeline_;
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
    Begun& begun = pipeline_.since_step_;
    if (record.kind == RecordKind::kWindow) {
      recording_ = record.flags != 0;
      begun = {};
    } else if (record.kind == RecordKind::kStep && recording_) {
      pipeline_.in_steps_.scopes += begun.scopes;
      pipeline_.in_steps_.ops += begun.ops;
      begun = {};
    } else if (is_begin(record.kind)) {
      ++(record.kind == RecordKind::kOpBegin ? begun.ops : begun.scopes);
    }
  }
  pipeline_.resolver_.resolve(lane, records);
}

}  // namespace layertrace
