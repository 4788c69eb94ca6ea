// Autograd's engine. A node's work is more than its record: the sums of bias gradients and the
// additions that join gradients run around it, inside `Engine::evaluate_function`. That function
// and those that begin a pass are exported and called through the lookup table (seen in 2.15), so
// they can be stood in for; nothing has to be registered with PyTorch, and no tensor is wrapped.
// See engine.h for the two ways.
#include <torch/csrc/autograd/engine.h>

#include <dlfcn.h>

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/call_slots.h"
#include "record/definitions.h"
#include "torch/cuda_devices.h"
#include "torch/engine.h"
#include "torch/engine_records.h"
#include "torch/next_function.h"
#include "torch/node_names.h"
#include "torch/open_norm.h"
#include "torch/scopes.h"
#include "torch/sequence.h"

namespace layertrace {
namespace {

constexpr const char* kEvaluate =
    "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_"
    "11InputBufferERKS2_"
    "INS0_10ReadyQueueEE";
constexpr const char* kExecute =
    "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_"
    "EEbbbS7_";

constexpr const char* kExecuteTask =
    "_ZN5torch8autograd6Engine23execute_with_graph_taskERKSt10shared_ptrINS0_9GraphTaskEEN3c1013"
    "intrusive_ptrINS0_4NodeENS7_6detail34intrusive_target_default_null_typeIS9_EEEEONS0_"
    "11InputBufferE";

class NodeScope {
 public:
  NodeScope(torch::autograd::Node* node, const torch::autograd::InputBuffer& inputs) noexcept {
    if (detail::recording.load(std::memory_order_relaxed) != 0 && node != nullptr &&
        engine_is_followed()) [[unlikely]] {
      enter(*node, inputs);
    }
  }
  NodeScope(const NodeScope&) = delete;  // it stands for a stretch of one thread's stack
  NodeScope& operator=(const NodeScope&) = delete;

  // Told whether something was thrown: to ask for it would take as long as the rest.
  void leave(bool thrown) noexcept {
    if (place_.depth == 0) [[likely]]
      return;
    if (ThreadState* thread = recorder::last_state())
      thread->leave(place_, next_sequence(), thrown);
  }

 private:
  void enter(torch::autograd::Node& node, const torch::autograd::InputBuffer& inputs) noexcept {
    ThreadState* thread = recorder::this_thread();
    if (thread == nullptr) return;
    close_abandoned_norm();
    const NodeDescription facts = describe(node);
    if (thread->makes_marks()) [[unlikely]] {
      const AssumedStream on_stream(stream_of(node, inputs));
      enter(*thread, facts);
    } else {
      enter(*thread, facts);
    }
  }
  void enter(ThreadState& thread, const NodeDescription& facts) noexcept {
    place_ = thread.enter_node(facts.name, facts.value, facts.flags, next_sequence());
  }
  // As the engine chooses it.
  static std::optional<c10::Stream> stream_of(torch::autograd::Node& node,
                                              const torch::autograd::InputBuffer& inputs) noexcept {
    try {
      return inputs.opt_overridden_consumer_stream ? inputs.opt_overridden_consumer_stream
                                                   : node.stream();
    } catch (...) {  // metadata that is not there
      return std::nullopt;
    }
  }
  ThreadState::Place place_;
};

std::atomic<bool> follow_engine{true};

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::InputBuffer;
using torch::autograd::Node;
using torch::autograd::ReadyQueue;
using torch::autograd::variable_list;

// The queues from which the threads of devices take nodes; only the engine's kin may see them.
struct EngineQueues : Engine {
  static constexpr auto of_devices() { return &EngineQueues::device_ready_queues_; }
};

// Of a queue: LibTorch does not export ReadyQueue::empty(), which is these two.
template <auto kMutex, auto kHeap>
struct QueueAccess {
  friend bool is_empty(ReadyQueue& queue) {
    const std::lock_guard lock(queue.*kMutex);
    return (queue.*kHeap).empty();
  }
};
bool is_empty(ReadyQueue& queue);
template struct QueueAccess<&ReadyQueue::mutex_, &ReadyQueue::heap_>;  // may name private members

// Does no other node wait for a thread that runs those of this device? The calling thread of a pass
// runs what is on the CPU; each other device has a thread of the engine's own.
bool is_idle(const Engine& engine, ReadyQueue& cpu_queue, c10::Device device) {
  if (!device.is_cuda()) return is_empty(cpu_queue);
  const auto& queues = engine.*EngineQueues::of_devices();
  const auto index = std::size_t{static_cast<unsigned char>(device.index())};  // −1 is beyond all
  return index >= queues.size() || is_empty(*queues[index]);
}

void end_run() noexcept {
  if (ThreadState* thread = recorder::last_state()) thread->end_backward_run();
}

// Marks of the last layer's backward end where nothing follows it.
void end_run_if_idle(const Engine& engine, ReadyQueue& cpu_queue, Node& last) noexcept {
  ThreadState* thread = recorder::last_state();
  if (thread == nullptr || !thread->is_in_backward_run()) [[likely]]
    return;
  try {
    if (is_idle(engine, cpu_queue, last.device())) thread->end_backward_run();
  } catch (...) {  // a mutex that cannot be locked
  }
}

// The engine's functions, with the engine as first argument: a member function is called so.
void evaluate_function(Engine* engine, std::shared_ptr<GraphTask>& graph_task, Node* func,
                       InputBuffer& inputs, const std::shared_ptr<ReadyQueue>& cpu_ready_queue) {
  static const auto next =
      next_function<void, Engine, std::shared_ptr<GraphTask>&, Node*, InputBuffer&,
                    const std::shared_ptr<ReadyQueue>&>(kEvaluate);
  NodeScope scope(func, inputs);
  try {
    resume_records(*graph_task);
    next(engine, graph_task, func, inputs, cpu_ready_queue);
  } catch (...) {
    scope.leave(/*thrown=*/true);
    end_run();
    throw;
  }
  scope.leave(/*thrown=*/false);
  end_run_if_idle(*engine, *cpu_ready_queue, *func);
}

variable_list execute(Engine* engine, const edge_list& roots, const variable_list& inputs,
                      bool keep_graph, bool create_graph, bool accumulate_grad,
                      const edge_list& outputs) {
  static const auto next =
      next_function<variable_list, Engine, const edge_list&, const variable_list&, bool, bool, bool,
                    const edge_list&>(kExecute);
  static const NameId name = NameTable::instance().intern("backward");
  const InterposedRegion region(name, Phase::kBackward);
  const Pass pass;
  return next(engine, roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
}

c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
    Engine* engine, const std::shared_ptr<GraphTask>& graph_task, c10::intrusive_ptr<Node> root,
    InputBuffer&& inputs) {
  static const auto next =
      next_function<c10::intrusive_ptr<at::ivalue::Future>, Engine,
                    const std::shared_ptr<GraphTask>&, c10::intrusive_ptr<Node>, InputBuffer&&>(
          kExecuteTask);
  Pass::begin(*graph_task);
  return next(engine, graph_task, std::move(root), std::move(inputs));
}

struct Redirection {
  CallSlot slot;
  void* ours;
};

// Looked for once: it takes a walk over all that LibTorch calls. The engine's nodes are called from
// its own library, its passes from Python's.
const std::vector<Redirection>& redirections() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<Redirection>;
    for (const CallSlot& slot : find_call_slots("/libtorch_cpu.so", kEvaluate))
      all->push_back({slot, reinterpret_cast<void*>(&evaluate_function)});
    if (all->empty()) return all;
    for (const CallSlot& slot : find_call_slots("/libtorch_python.so", kExecute))
      all->push_back({slot, reinterpret_cast<void*>(&execute)});
    for (const CallSlot& slot : find_call_slots("/libtorch_python.so", kExecuteTask))
      all->push_back({slot, reinterpret_cast<void*>(&execute_with_graph_task)});
    return all;
  }();
  return *kAll;
}

}  // namespace

bool engine_is_interposed() {
  // Whoever comes first among the libraries that the program started with is called; with
  // layertrace linked after LibTorch, or loaded by Python, that is not us.
  static const bool kIsInterposed = [] {
    Dl_info found{};
    Dl_info ours{};
    void* program = dlopen(nullptr, RTLD_LAZY);
    void* first = program != nullptr ? dlsym(program, kEvaluate) : nullptr;
    return first != nullptr && dladdr(first, &found) != 0 &&
           dladdr(reinterpret_cast<const void*>(&engine_is_interposed), &ours) != 0 &&
           found.dli_fbase == ours.dli_fbase;
  }();
  return kIsInterposed;
}

bool redirect_engine() noexcept {
  try {
    for (const char* symbol : {kEvaluate, kExecute, kExecuteTask}) {
      if (look_up_next(symbol) == nullptr) return false;
    }
    for (const Redirection& redirection : redirections()) {
      if (set_call_slot(redirection.slot, redirection.ours)) continue;
      restore_engine();
      return false;
    }
    return !redirections().empty();
  } catch (...) {  // no memory
    return false;
  }
}

void restore_engine() noexcept {
  for (const Redirection& redirection : redirections())
    set_call_slot(redirection.slot, redirection.slot.original);
}

bool engine_is_followed() noexcept { return follow_engine.load(std::memory_order_relaxed); }
void set_engine_followed(bool followed) noexcept {
  follow_engine.store(followed, std::memory_order_relaxed);
}

}  // namespace layertrace

namespace torch::autograd {

void Engine::evaluate_function(std::shared_ptr<GraphTask>& graph_task, Node* func,
                               InputBuffer& inputs,
                               const std::shared_ptr<ReadyQueue>& cpu_ready_queue) {
  layertrace::evaluate_function(this, graph_task, func, inputs, cpu_ready_queue);
}

variable_list Engine::execute(const edge_list& roots, const variable_list& inputs, bool keep_graph,
                              bool create_graph, bool accumulate_grad, const edge_list& outputs) {
  return layertrace::execute(this, roots, inputs, keep_graph, create_graph, accumulate_grad,
                             outputs);
}

c10::intrusive_ptr<at::ivalue::Future> Engine::execute_with_graph_task(
    const std::shared_ptr<GraphTask>& graph_task, c10::intrusive_ptr<Node> graph_root,
    InputBuffer&& input_buffer) {
  return layertrace::execute_with_graph_task(this, graph_task, std::move(graph_root),
                                             std::move(input_buffer));
}

}  // namespace torch::autograd
