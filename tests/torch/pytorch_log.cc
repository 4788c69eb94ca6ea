#include "torch/pytorch_log.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <sys/syscall.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>

namespace layertrace::test {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::GraphRoot;
using torch::autograd::Node;

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";

// ---- PyTorch's callbacks ----

struct OpenOp {
  std::size_t index;  // into ops
  bool leaf = true;
};
struct Logged {
  std::mutex mutex;
  std::vector<NodeSeen> nodes;
  std::vector<OpSeen> ops;
};
Logged& logged() {
  static Logged instance;
  return instance;
}
thread_local std::vector<OpenOp> open_ops;

std::uint64_t this_tid() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

// It is not a mere name for calls of others: LibTorch gives those the kernel
// CompositeImplicitAutograd, and nothing else. Views by way of as_strided are no work either.
bool works(const at::RecordFunction& fn) {
  static const std::set<std::string_view> kViews{
      "aten::detach",   "aten::diagonal", "aten::expand",    "aten::permute",
      "aten::select",   "aten::slice",    "aten::split",     "aten::split_with_sizes",
      "aten::squeeze",  "aten::t",        "aten::transpose", "aten::unbind",
      "aten::unsqueeze"};
  const auto name = fn.operator_name();
  const auto op = name ? c10::Dispatcher::singleton().findOp(*name) : std::nullopt;
  if (!op || kViews.contains(fn.name())) return false;
  const bool own = op->hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
                   op->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  return own || !op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& fn) {
  Logged& log = logged();
  const std::lock_guard lock(log.mutex);
  const std::string_view name = fn.name();
  if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    const NodePtr node = torch::autograd::get_current_node();
    const auto seen = std::find_if(log.nodes.rbegin(), log.nodes.rend(),
                                   [&](const NodeSeen& n) { return n.node == node; });
    if (seen != log.nodes.rend()) seen->called = true;
    open_ops.push_back({std::string::npos});
    return nullptr;
  }
  if (name.starts_with(kEvaluate)) {
    NodePtr node = torch::autograd::get_current_node();
    if (dynamic_cast<const GraphRoot*>(node.get()) == nullptr) {
      log.nodes.push_back(
          {std::string(name.substr(kEvaluate.size())), std::move(node), false, this_tid()});
    }
    open_ops.push_back({std::string::npos});
    return nullptr;
  }
  if (!open_ops.empty()) open_ops.back().leaf = false;
  open_ops.push_back({log.ops.size()});
  log.ops.push_back(
      {std::string(name), torch::autograd::get_current_node(), works(fn), this_tid()});
  return nullptr;
}

void on_end(const at::RecordFunction& /*fn*/, at::ObserverContext* /*context*/) {
  if (open_ops.empty()) return;
  const OpenOp op = open_ops.back();
  open_ops.pop_back();
  Logged& log = logged();
  const std::lock_guard lock(log.mutex);
  if (op.index < log.ops.size() && op.leaf) log.ops[op.index].works = true;
}

}  // namespace

PytorchLog::PytorchLog() {
  logged().nodes.clear();
  logged().ops.clear();
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(&on_begin, &on_end)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}
PytorchLog::~PytorchLog() { at::removeCallback(handle_); }

std::vector<NodeSeen> PytorchLog::nodes() const { return logged().nodes; }

std::vector<OpSeen> PytorchLog::activities() const {
  std::vector<OpSeen> result = logged().ops;
  std::erase_if(result, [](const OpSeen& op) { return !op.works; });
  return result;
}

Strings PytorchLog::activity_names() const {
  Strings names;
  for (const OpSeen& op : activities()) names.push_back(op.name);
  return names;
}

Strings PytorchLog::node_names() const {
  Strings names;
  for (const NodeSeen& node : nodes()) names.push_back(node.name);
  return names;
}

Strings PytorchLog::during(const std::function<void()>& stretch) {
  const std::size_t before = logged().ops.size();
  stretch();
  Strings names;
  for (std::size_t i = before; i < logged().ops.size(); ++i) {
    const OpSeen& op = logged().ops[i];
    if (op.works && op.tid == this_tid()) names.push_back(op.name);
  }
  return names;
}

// ---- The graph ----

Makers::Makers(const torch::nn::Module& root, const std::string& prefix) {
  add_parameters(root, prefix);
}

void Makers::add_parameters(const torch::nn::Module& module, const std::string& path) {
  for (const auto& parameter : module.parameters(/*recurse=*/false)) {
    parameters_.emplace(parameter.unsafeGetTensorImpl(), path);
  }
  for (const auto& child : module.named_children()) {
    add_parameters(*child.value(), path.empty() ? child.key() : path + "." + child.key());
  }
}

torch::Tensor Makers::claim(torch::Tensor result, const std::string& path) {
  std::vector<NodePtr> pending;
  const auto visit = [&](const auto& node) {
    if (node == nullptr || !paths_.emplace(node.get(), path).second) return;
    kept_.emplace_back(node);
    pending.emplace_back(node);
  };
  visit(result.grad_fn());
  while (!pending.empty()) {
    const NodePtr node = pending.back();
    pending.pop_back();
    for (const auto& edge : node->next_edges()) visit(edge.function);
  }
  return result;
}

namespace {

struct ClaimOutputs : torch::autograd::FunctionPostHook {
  ClaimOutputs(Makers& to, std::string owner) : makers(to), path(std::move(owner)) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    for (const torch::Tensor& output : outputs) {
      if (output.defined()) makers.claim(output, path);
    }
    return outputs;
  }
  Makers& makers;
  std::string path;
};

}  // namespace

void Makers::claim_gradients() {
  for (const NodePtr& node : kept_) {
    if (dynamic_cast<const AccumulateGrad*>(node.get()) != nullptr) continue;
    node->add_post_hook(std::make_unique<ClaimOutputs>(*this, of(*node)));
  }
}

std::string Makers::of(const Node& node) const {
  if (const auto* accumulate = dynamic_cast<const AccumulateGrad*>(&node)) {
    const auto found = parameters_.find(accumulate->variable.unsafeGetTensorImpl());
    return found != parameters_.end() ? found->second : kNobody;
  }
  const auto found = paths_.find(&node);
  return found != paths_.end() ? found->second : kNobody;
}

std::string lines(const Strings& strings) {
  std::string text;
  for (const std::string& each : strings) text += each + '\n';
  return text;
}

}  // namespace layertrace::test
