// What PyTorch itself says happened: its own callbacks, and a walk over its graph. Who owns a
// backward node is found here without a sequence number.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace layertrace::test {

inline const std::string kRoot;               // the root's path
inline const std::string kNobody = "(none)";  // where a path is expected and there is no layer

using Strings = std::vector<std::string>;

// One line each: a difference then shows as one.
std::string lines(const Strings& strings);

using NodePtr = decltype(torch::autograd::get_current_node());

struct NodeSeen {
  std::string name;
  NodePtr node;  // kept, so that its address stays its own
  bool called =
      false;  // false: the engine came to it, but only to pick up a gradient, or a hook threw first
  std::uint64_t tid = 0;
};

struct OpSeen {
  std::string name;
  NodePtr node;        // the autograd node that was running, if any
  bool works = false;  // a leaf, or one with a kernel of its own: what layertrace calls an activity
  std::uint64_t tid = 0;
};

// Logs autograd's nodes (the engine's own record of each, which spans all that it does for the
// node) and operators, on all threads, while it lives.
class PytorchLog {
 public:
  PytorchLog();
  ~PytorchLog();
  PytorchLog(const PytorchLog&) = delete;
  PytorchLog& operator=(const PytorchLog&) = delete;

  std::vector<NodeSeen> nodes() const;
  // Those that do work, in the order of their start on each thread.
  std::vector<OpSeen> activities() const;
  Strings activity_names() const;
  Strings node_names() const;

  // The names of the activities that a stretch of the program ran, on its own thread, while a log
  // lives.
  static Strings during(const std::function<void()>& stretch);

 private:
  at::CallbackHandle handle_;
};

// Whose nodes are they? Filled by walking the graph from each result as the forward makes it: a
// node not reached before was made by whoever just finished. Gradients of parameters belong to the
// parameter's first owner.
class Makers {
 public:
  explicit Makers(const torch::nn::Module& root, const std::string& prefix = "");
  Makers() = default;

  torch::Tensor claim(torch::Tensor result, const std::string& path);
  // Calls a layer: what was made before it is the caller's, what is new then is the layer's.
  template <typename Layer>
  torch::Tensor call(Layer& layer, const std::string& path, torch::Tensor x,
                     const std::string& caller = kRoot) {
    x = claim(std::move(x), caller);
    return claim(layer->forward(x), path);
  }
  // What a node makes when it runs (for a second derivative) is to be its owner's.
  void claim_gradients();
  std::string of(const torch::autograd::Node& node) const;

 private:
  void add_parameters(const torch::nn::Module& module, const std::string& path);
  std::map<const torch::autograd::Node*, std::string> paths_;
  std::map<const c10::TensorImpl*, std::string> parameters_;
  std::vector<NodePtr> kept_;
};

}  // namespace layertrace::test
