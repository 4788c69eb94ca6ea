// What GPUs do, by CUPTI's activity records.
#pragma once

#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include <layertrace/profile.h>
#include <layertrace/result.h>

#include "activity/cupti_buffers.h"
#include "activity/cupti_library.h"
#include "activity/cupti_records.h"
#include "activity/device_clock.h"
#include "activity/graph_nodes.h"
#include "capture/device.h"

namespace layertrace::cuda {

class CuptiActivity {
 public:
  explicit CuptiActivity(const CuptiLibrary& cupti);
  ~CuptiActivity() { close(); }
  CuptiActivity(const CuptiActivity&) = delete;  // CUPTI holds its address while it is subscribed
  CuptiActivity& operator=(const CuptiActivity&) = delete;

  // Subscribes, and sees whether CUPTI lets this user record at all.
  Result<void> start();
  Result<void> enable() noexcept;
  void disable() noexcept;
  void close() noexcept;

  void push(std::uint64_t frame) noexcept;
  void pop(std::uint64_t outer) noexcept;

  // What records call a stream of the calling thread's device.
  std::optional<std::uint32_t> stream_id(CUstream stream) const noexcept;

  // The calling thread is none of the program's.
  void leave_out_this_thread() noexcept;

  // See DeviceCapture::drain().
  void drain(DeviceConsumer& consumer, bool all);
  GpuHealth health() const;

 private:
  static void CUPTIAPI on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                   const void* data);
  CUptiResult enable_calls() noexcept;
  void set_thread_ids() noexcept;
  void turn_callbacks(std::uint32_t on) noexcept;
  void on_graph_node(const CUpti_GraphData& graph, bool cloned) noexcept;
  void set_clock();
  bool has_own_clock() const noexcept;
  void read_clock();
  void count_dropped();
  template <typename Function>
  void for_each(const std::vector<CuptiBuffers::Filled>& buffers, const Function& function);

  const CuptiLibrary& cupti_;
  std::uint64_t session_ = 0;  // by which it is told from others of the process
  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool subscribed_ = false;
  bool gave_clock_ = false;
  std::optional<CUpti_ActivityThreadIdType> thread_ids_before_;
  DeviceClock clock_;
  GpuHealth health_;
  RecordReader reader_;
  GraphNodes graph_nodes_;
  std::chrono::steady_clock::time_point flushed_{};
  std::uint64_t lost_before_ = 0;
  std::uint64_t refused_before_ = 0;
};

}  // namespace layertrace::cuda
