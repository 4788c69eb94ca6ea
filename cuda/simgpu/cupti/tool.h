// What CUPTI's stand-in sees of the machine, turned into records and callbacks.
#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/machine.h"
#include "cupti/delivery.h"
#include "cupti/subscription.h"
#include "cupti/timestamps.h"

namespace simgpu::cupti {

class Tool final : public Observer {
 public:
  // Never destroyed: calls may come while the program exits.
  static Tool& instance();

  Timestamps& timestamps() noexcept { return timestamps_; }
  Delivery& delivery() noexcept { return delivery_; }
  Subscription& subscription() noexcept { return subscription_; }

  bool enabled(CUpti_ActivityKind kind) const noexcept {
    return enabled_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }
  void enable(CUpti_ActivityKind kind, bool on);
  // A single function of an API, whether or not the others are: until the API's kind is set anew.
  void enable_function(Api api, std::uint32_t id, bool on);

  // Whether records have the system's ids of threads.
  void set_system_ids(bool on) noexcept { has_system_ids_.store(on); }
  bool has_system_ids() const noexcept { return has_system_ids_.load(); }

  // The device's times of events are told only to those who ask.
  void enable_event_times(bool on) noexcept { event_times_.store(on); }

  // Watches the machine while somebody wants to know something: to be called when a subscriber
  // wants other callbacks, of all functions or of one.
  void update_watch();
  void update_watch(Api api, std::uint32_t id);

  void set_timestamp_callback(CUpti_TimestampCallbackFunc callback);

  // The calling thread's ids, by kind.
  void push(CUpti_ExternalCorrelationKind kind, std::uint64_t id);
  bool pop(CUpti_ExternalCorrelationKind kind, std::uint64_t* id);

  void flush(bool forced);

  void on_enter(ApiCall& call) override;
  void on_leave(ApiCall& call) override;
  void on_activity(const Activity& activity) override;
  void on_synchronization(const Synchronization& synchronization) override;
  void on_event(const EventMark& mark) override;
  void on_graph_run(const GraphRun& run) override;
  void on_resource(const ResourceChange& change) override;

 private:
  static constexpr std::size_t kKinds = CUPTI_ACTIVITY_KIND_COUNT;
  static constexpr std::size_t kFunctions = FunctionSet::kFunctions;

  Tool();
  void forget_parent() noexcept;
  std::uint32_t thread_id() const;
  bool records(Api api, std::uint32_t id) const noexcept;
  bool tells_of_calls() const noexcept;
  bool wants(Api api, std::uint32_t id) const noexcept;
  void observe();  // watch_mutex_ is held
  std::uint64_t read_clocks(std::uint32_t correlation) const;
  Span span_of(const Slot& slot) const;
  Span in_stream(const Activity& activity);
  void spoil(Record& record);
  void on_kernel(const Activity& kernel, CUpti_ActivityKind kind);

  std::array<std::atomic<bool>, kKinds> enabled_{};
  std::array<std::array<std::atomic<bool>, kFunctions>, 2> recorded_{};  // by API and function
  std::atomic<bool> event_times_{false};
  std::atomic<bool> has_system_ids_{false};
  bool sets_clock_ = false;  // a fault: the wall clock goes back
  bool needs_kind_ = false;  // a fault: single functions are told only while their kind is on
  Timestamps timestamps_;
  Delivery delivery_;
  Subscription subscription_;

  std::mutex watch_mutex_;
  ShortLock ends_lock_;
  std::map<std::uint64_t, std::uint64_t> stream_ends_;  // in the client's unit
  bool spoils_ = false;  // a device that tells its times wrongly was asked for
  std::mutex mutex_;     // of what spoils
  std::uint64_t device_records_ = 0;
  std::map<std::uint64_t, std::uint64_t> told_ends_;  // of each stream's last record
  std::uint32_t last_correlation_ = 0;
};

}  // namespace simgpu::cupti
