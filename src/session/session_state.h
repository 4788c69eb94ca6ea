// The life of one session: recording on and off by schedule, the writer thread, the end. Knows no
// framework; the hooks and the model's layers are handed in.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <layertrace/layertrace.h>

#include "base/output_file.h"
#include "capture/device.h"
#include "capture/hooks.h"
#include "capture/recording.h"
#include "capture/schedule.h"
#include "session/class_formulas.h"
#include "session/pipeline.h"

namespace layertrace {

class SessionState {
 public:
  // Makes the session the active one and begins with its schedule. `define` adds the model's layers
  // and parameters to the recording before the first record. `find_device` is asked for what a GPU
  // does, once it is sure that the session can start; it may give nothing.
  using FindDevice = std::function<Result<DeviceParts>(const DeviceRequest&)>;
  static Result<std::shared_ptr<SessionState>> start(Options options,
                                                     std::unique_ptr<CaptureHooks> hooks,
                                                     const std::function<void(Recording&)>& define,
                                                     const FindDevice& find_device = {});
  ~SessionState();
  SessionState(const SessionState&) = delete;  // hooks and the writer thread refer to it
  SessionState& operator=(const SessionState&) = delete;

  void step() noexcept;
  Result<Profile> stop();
  Result<Profile> profile() const;
  Result<void> add_metric(const MetricValue& metric);
  Result<void> save(const std::string& path) const;
  bool recording() const noexcept;

  // What a process does at its end, wherever that is: stops the active session, if there is one and
  // it is this process's.
  static void stop_active() noexcept;

 private:
  SessionState(Options options, std::unique_ptr<CaptureHooks> hooks,
               std::unique_ptr<OutputFile> output);

  static void forget_active_after_fork() noexcept;
  bool is_ours() const noexcept;
  void enter_mode(StepMode mode, std::uint64_t step) noexcept;
  Result<void> prepare(const std::function<void(Recording&)>& define,
                       const FindDevice& find_device);
  Result<void> use_device(const FindDevice& find_device);
  void turn_device(bool on) noexcept;
  void note_refusal(const Error& error) noexcept;
  void rest_device() noexcept;
  void sample_edge() noexcept;
  Result<void> start_writer();
  void run_writer() noexcept;
  void restore_terminate_handler() const;
  Health closing_health() const;
  DeviceInfo describe_device(const Profile& profile, bool may_measure) const;

  const Options options_;
  const std::unique_ptr<CaptureHooks> hooks_;
  const std::unique_ptr<OutputFile> output_;
  const std::shared_ptr<Recording> recording_;
  const pid_t pid_;
  std::unique_ptr<SessionFormulas> formulas_;
  std::unique_ptr<Pipeline> pipeline_;
  std::shared_ptr<DeviceCapture> device_;
  std::shared_ptr<DeviceCapture> unused_device_;  // nobody had begun to use it
  std::mutex device_mutex_;
  bool device_on_ = false;
  std::uint64_t device_idle_ns_ = 0;  // since when nothing is wanted of it; 0 while something is
  std::uint64_t device_since_ticks_ = 0;  // when it was last wanted, on the records' clock
  std::uint64_t device_idle_ticks_ = 0;   // the same on the records' clock
  std::vector<std::string> device_notes_;
  bool device_refused_ = false;  // at a window's start; told once

  mutable std::mutex mutex_;  // start, step, stop, save: one at a time
  StepMode mode_ = StepMode::kIdle;
  std::uint64_t next_step_ = 0;
  bool has_recorded_ = false;  // the schedule has come to a step that is recorded
  std::atomic<bool> stopped_{false};
  std::optional<Profile> profile_;
  std::uint64_t end_ns_ = 0;  // on the trace's clock
  DeviceInfo given_device_;
  double scope_cost_ns_ = 0;
  double op_cost_ns_ = 0;

  std::unique_ptr<std::thread> writer_;
  mutable std::mutex pipeline_mutex_;  // the writer works on the pipeline, or someone looks at it
  std::mutex wake_mutex_;
  std::vector<DeviceSample> edge_samples_;  // of memory, where windows begin and end
  std::condition_variable wake_;
  bool stopping_ = false;
  std::atomic<bool> broken_{false};  // the writer gave up
  std::atomic<std::uint64_t> writer_cpu_ns_{0};
};

}  // namespace layertrace
