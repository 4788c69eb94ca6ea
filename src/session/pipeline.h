// From records to results: drain → attribution → {profile, trace}. Runs on the writer thread; knows
// no session, no clock and no framework, so that a test or a benchmark can run it by hand.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/device_resolver.h"
#include "attribute/fold.h"
#include "attribute/resolver.h"
#include "attribute/span.h"
#include "base/byte_sink.h"
#include "base/clock.h"
#include "capture/device.h"
#include "capture/recording.h"
#include "perfetto/trace_writer.h"
#include "record/drain.h"
#include "session/span_tee.h"

namespace layertrace {

class Pipeline {
 public:
  Pipeline(std::shared_ptr<Recording> recording, ByteSink& out, const RunInfo& run, TickScale scale,
           std::size_t max_intervals, std::size_t fold_bytes = std::size_t{8} << 20,
           bool infers = false);
  Pipeline(const Pipeline&) = delete;  // its parts refer to each other
  Pipeline& operator=(const Pipeline&) = delete;

  // What a GPU does is taken in, too. Before the first pump.
  void use(DeviceCapture& device);

  // The system's clocks at the recording's start and at its end, for the trace.
  void clocks(const ClockReadings& now) { writer_->clocks(now); }

  // Takes in what was recorded since the last call, up to a time that is past, and writes it.
  // Returns the number of records.
  std::uint64_t pump(std::uint64_t horizon_ticks);

  std::uint64_t to_ns(std::uint64_t ticks) const noexcept { return scale_.to_ns(ticks); }

  // A figure of the user's, told at this moment.
  void add_metric(std::uint64_t now_ticks, const MetricValue& metric);

  // A kernel that a GPU was asked for between these moments has not come yet.
  bool awaits_kernels(std::uint64_t from_ticks, std::uint64_t until_ticks) const {
    return device_resolver_.awaits_kernels(from_ticks, until_ticks);
  }
  // On the meta device no memory is taken, whatever its allocator tells.
  void leave_out_memory() noexcept { tee_.leave_out_memory(); }

  // Figures of devices at this moment.
  void take(const std::vector<DeviceSample>& samples);

  // What the device of a profile can do, which has all but this and the rates.
  using DescribeDevice = std::function<DeviceInfo(const Profile&)>;

  // The profile so far: of the steps that have ended, or of all there is where none has. Recording
  // goes on.
  Profile snapshot(std::uint64_t now_ticks, const Health& health,
                   const DescribeDevice& describe = {});

  // The end: closes what is open and gives the profile. `health` brings what the records cannot
  // tell.
  Profile finish(std::uint64_t now_ticks, const Health& health,
                 const DescribeDevice& describe = {});

 private:
  // Stands before the resolver: fetches definitions and new threads in time, and counts what
  // recording cost.
  class Intake final : public RecordConsumer {
   public:
    explicit Intake(Pipeline& pipeline) : pipeline_(pipeline) {}
    void add_threads() override;
    void refresh() override;
    void open_lane(Lane lane, std::uint64_t key, std::uint64_t tid,
                   const std::string& name) override;
    void close_lane(Lane lane) override;
    void index(Lane lane, std::span<const Record> records) override;
    void resolve(Lane lane, std::span<const Record> records) override;

   private:
    Pipeline& pipeline_;
    bool recording_ = false;
  };

  void fill_health(Health& health, const Profile& profile) const;

  std::shared_ptr<Recording> recording_;
  RunInfo run_;
  TickScale scale_;
  Dictionary dictionary_;
  Fold fold_;
  std::unique_ptr<TraceWriter> writer_;
  SpanTee tee_;  // to the profile and to the trace
  Resolver resolver_;
  DeviceResolver device_resolver_;
  DeviceCapture* device_ = nullptr;
  std::vector<MetricValue> metrics_;
  Intake intake_;
  Drain drain_;
  // Begins of the recorded steps, and those since the last step: they count only where it is never
  // ended.
  struct Begun {
    std::uint64_t scopes = 0;
    std::uint64_t ops = 0;
  };
  Begun in_steps_;
  Begun since_step_;
};

}  // namespace layertrace
