// PyTorch's side of a session: dispatcher operators by RecordFunction, and autograd's nodes where the engine could not be
// stood in for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/hooks.h"
#include "torch/module_registry.h"

namespace layertrace {

// How autograd's nodes are seen. kAuto stands in for the engine where that works, else uses callbacks.
enum class NodeSource : std::uint8_t { kAuto, kCallbacks };

class TorchHooks final : public CaptureHooks {
 public:
  explicit TorchHooks(NodeSource nodes = NodeSource::kAuto);
  ~TorchHooks() override;

  void enable(bool ops) noexcept override;
  void disable() noexcept override;
  std::uint64_t (*thread_key() const)() override;
  double measure_op_cost() override;
  std::string framework_version() const override;
  std::vector<std::string> notes() const override;

 private:
  const bool interposed_;
  const bool follow_engine_;
  std::optional<std::uint64_t> callback_;
};

}  // namespace layertrace
