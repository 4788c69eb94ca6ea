// PyTorch's side of a session: dispatcher operators by RecordFunction, and autograd's nodes where
// the engine could not be stood in for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <layertrace/result.h>

#include "capture/hooks.h"
#include "torch/counting_plan.h"
#include "torch/module_registry.h"

namespace layertrace {

// How autograd's nodes are seen. kAuto stands in for the engine where that works, else uses
// callbacks.
enum class NodeSource : std::uint8_t { kAuto, kCallbacks };

// For the sessions that start from now on. Not a user's choice: tests run both, and it is exported
// for them.
LAYERTRACE_API void set_node_source(NodeSource nodes) noexcept;

// Operators are recorded on this thread, and nobody else wants to know of them.
bool only_we_listen() noexcept;

class TorchHooks final : public CaptureHooks {
 public:
  TorchHooks();
  ~TorchHooks() override;

  // Makes the registry the active one, for as long as these hooks live.
  void use(std::shared_ptr<ModuleRegistry> registry);

  void set_counting(Counting counting) noexcept override;
  void begin_step() noexcept override;
  void end_steps() noexcept override;
  // An outermost module is called, with inputs of which the key tells the shapes. On any thread.
  void meet_call(std::uint64_t key) noexcept;
  // Operators are counted now.
  static std::atomic<bool> is_counting;
  // It matters with which shapes a model is called.
  static std::atomic<bool> wants_calls;
  // Numbers the recorded steps of the process.
  static std::atomic<std::uint32_t> steps;

  void enable(bool ops) noexcept override;
  void disable() noexcept override;
  std::uint64_t (*thread_key() const)() override;
  double measure_op_cost() override;
  std::vector<DeviceSample> sample_devices() override;
  std::string framework_version() const override;
  int compute_threads() const override;
  std::vector<std::string> notes() const override;

 private:
  static void set_is_counting(bool on) noexcept;
  void listen() noexcept;
  template <typename Tell>
  void follow_plan(std::uint64_t key, Tell tell) noexcept;

  std::mutex mutex_;  // guards what is listened to
  CountingPlan plan_;
  bool enabled_ = false;
  bool ops_ = true;
  const bool interposed_;
  const bool redirects_;  // the engine's calls are led to us while recording
  bool redirected_ = false;
  bool reports_memory_ = false;
  bool follow_engine_;
  std::shared_ptr<ModuleRegistry> registry_;
  std::optional<std::uint64_t> callback_;
};

}  // namespace layertrace
