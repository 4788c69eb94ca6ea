#include "torch/torch_hooks.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/pointer_table.h"
#include "capture/recorder.h"
#include "torch/cuda_devices.h"
#include "torch/engine.h"
#include "torch/memory_reports.h"
#include "torch/node_names.h"
#include "torch/op_counter.h"
#include "torch/op_facts.h"
#include "torch/open_norm.h"
#include "torch/reported_regions.h"
#include "torch/sequence.h"

namespace layertrace {
namespace {

std::atomic<NodeSource> node_source{NodeSource::kAuto};

// What PyTorch holds of ours. A forked child inherits it from a session that is not its own and
// that nobody ends there.
std::optional<at::CallbackHandle> installed_callback;

void remove_installed_callback() noexcept {
  if (!installed_callback) return;
  try {
    at::removeCallback(*installed_callback);
  } catch (...) {
  }
  installed_callback.reset();
}

// Is it the engine's own record of a node? Its name is made up for each; those of operators begin
// otherwise ("aten::"), so that two letters tell nearly all of them.
bool is_engines(const char* name) noexcept {
  constexpr std::string_view kPrefix = "autograd::engine::evaluate_function";
  return name[0] == kPrefix[0] && name[1] == kPrefix[1] &&
         std::strncmp(name, kPrefix.data(), kPrefix.size()) == 0;
}

struct KnownOp {
  OpFacts facts;
  const char* text = nullptr;  // our copy, to be sure that the address still says the same
};

PointerTable<KnownOp, 8192>& op_table() {
  static auto* table = new PointerTable<KnownOp, 8192>;  // never destroyed: operators may run while
                                                         // the program exits
  return *table;
}

KnownOp look_up(const at::RecordFunction& fn, const char* text) {
  const NameId name = NameTable::instance().intern(text);
  return {{name, is_composite(fn) ? kOpComposite : std::uint8_t{0}}, kept_text(name, text)};
}

OpFacts facts_of(const at::RecordFunction& fn, const char* text) noexcept {
  // An operator's name lives as long as the operator, so its address will do; a name that was made
  // up for one call (there are few) may be another's later.
  if (const KnownOp* known = op_table().find(text);
      known != nullptr && std::strcmp(known->text, text) == 0) [[likely]] {
    return known->facts;
  }
  try {
    const KnownOp known = look_up(fn, text);
    op_table().add(text, known);
    return known.facts;
  } catch (...) {  // no memory for the name
    return {NameId{0}, kOpComposite};
  }
}

void enter_node(ThreadState& thread, const at::RecordFunction& fn) noexcept {
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr || engine_is_followed()) return thread.skip_op();
  // A node may run another one as a part of itself (CopySlices does): that has a record, but is not
  // the engine's.
  if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION &&
      static_cast<std::uint64_t>(fn.seqNr()) != node->sequence_nr()) {
    return thread.skip_op();
  }
  close_abandoned_norm();
  const NodeDescription facts = describe(*node);
  thread.enter_op_as_node(facts.name, facts.value, facts.flags, next_sequence());
}

void enter_region(ThreadState& thread, const at::RecordFunction& fn) noexcept {
  close_abandoned_norm();
  try {
    const ReportedRegion region = describe_region(fn.name());
    thread.enter_op_as_region(NameTable::instance().intern(region.name), region.phase,
                              next_sequence());
  } catch (...) {  // no memory for the name
    thread.skip_op();
  }
}

std::unique_ptr<at::ObserverContext> on_function(const at::RecordFunction& fn) {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return nullptr;
  if (fn.scope() == at::RecordScope::USER_SCOPE) {
    enter_region(*thread, fn);
    return nullptr;
  }
  const char* name = fn.name();
  if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION || is_engines(name)) {
    enter_node(*thread, fn);
  } else {
    const OpFacts facts = facts_of(fn, name);
    thread->enter_op(facts.name, facts.flags);
  }
  return nullptr;
}

void on_function_end(const at::RecordFunction& /*fn*/, at::ObserverContext* /*context*/) {
  ThreadState* thread = recorder::last_state();
  if (thread == nullptr) return;
  thread->leave_op(&next_sequence);
  // Without the engine nobody knows what follows a node: its layer's marks end with it.
  if (thread->makes_marks() && !engine_is_followed()) [[unlikely]]
    thread->end_backward_run();
}

// The same while operators are counted. They are records only where that is wanted.
std::atomic<bool> records_operators{true};

// Not in a forked child, nor once the session is over: whoever listened there does no more.
std::unique_ptr<at::ObserverContext> on_counted_function(const at::RecordFunction& fn) {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return nullptr;
  const char* name = fn.name();
  const bool is_function = fn.scope() == at::RecordScope::FUNCTION;
  const OpFacts* facts = is_function && !is_engines(name) ? begin_counting(fn, name) : nullptr;
  // Without operators nodes are told by their own records, not by the engine's.
  if (is_function && !records_operators.load(std::memory_order_relaxed)) {
    thread->skip_op();
  } else if (facts != nullptr) {
    thread->enter_op(facts->name, facts->flags);
  } else {
    on_function(fn);
  }
  return nullptr;
}

void on_counted_function_end(const at::RecordFunction& fn, at::ObserverContext* context) {
  const OpAmounts* amounts = end_counting(fn);
  if (amounts == nullptr) return on_function_end(fn, context);
  if (ThreadState* thread = recorder::last_state()) thread->leave_op(&next_sequence, amounts);
}

}  // namespace

bool only_we_listen() noexcept {
  const auto listeners = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  return listeners && listeners->callbacks_.size() == 1 &&
         (listeners->callbacks_[0].start_ == &on_function ||
          listeners->callbacks_[0].start_ == &on_counted_function) &&
         engine_is_followed();
}

void set_node_source(NodeSource nodes) noexcept { node_source.store(nodes); }

TorchHooks::TorchHooks()
    : interposed_(engine_is_interposed()),
      redirects_(!interposed_ && node_source == NodeSource::kAuto),
      follow_engine_(node_source == NodeSource::kAuto) {}

TorchHooks::~TorchHooks() {
  disable();
  if (registry_ != nullptr) registry_->tell_calls({});
}

void TorchHooks::use(std::shared_ptr<ModuleRegistry> registry) {
  registry_ = std::move(registry);
  registry_->tell_calls([this](std::uint64_t key) { meet_call(key); });
  ModuleRegistry::set_active(registry_);
}

void TorchHooks::enable(bool ops) noexcept {
  const std::lock_guard lock(mutex_);
  if (redirects_) {
    redirected_ = redirect_engine();
    follow_engine_ = redirected_;
  }
  set_engine_followed(follow_engine_);
  if (plan_.mode() != Counting::kOff) find_memory_reports();
  ops_ = ops;
  enabled_ = true;
  listen();
}

// Asks PyTorch to call us for what is wanted now, and no more.
void TorchHooks::listen() noexcept {
  remove_installed_callback();
  const bool counts = plan_.is_on();
  if (counts != reports_memory_) {
    if (!counts) restore_memory_reports();
    reports_memory_ = counts && redirect_memory_reports();
  }
  records_operators = ops_;
  try {
    at::RecordFunctionCallback callback(counts ? &on_counted_function : &on_function,
                                        counts ? &on_counted_function_end : &on_function_end);
    callback.needsInputs(counts).needsOutputs(counts);
    std::unordered_set<at::RecordScope, std::hash<at::RecordScope>> scopes;
    // Python's optimizers and loaders say by it what they do; LibTorch's are stood in for.
    if (registry_ != nullptr && !registry_->is_of_libtorch() &&
        !registry_->source().tells_reported())
      scopes.insert(at::RecordScope::USER_SCOPE);
    // The engine's own records of nodes are among the functions, too, and hold more than the nodes'
    // own.
    if (ops_ || counts) scopes.insert(at::RecordScope::FUNCTION);
    if (!ops_ && !follow_engine_) scopes.insert(at::RecordScope::BACKWARD_FUNCTION);
    if (scopes.empty()) return;
    callback.scopes(scopes);
    callback_ = installed_callback = at::addGlobalCallback(callback);
  } catch (...) {  // no memory: layers are recorded, operators are not
  }
}

void TorchHooks::disable() noexcept {
  const std::lock_guard lock(mutex_);
  enabled_ = false;
  plan_.abandon_step();
  set_is_counting(false);
  if (std::exchange(redirected_, false)) restore_engine();
  if (std::exchange(reports_memory_, false)) restore_memory_reports();
  if (callback_ && callback_ == installed_callback) remove_installed_callback();
  callback_.reset();
}

// ---- Counting ----

constinit std::atomic<bool> TorchHooks::is_counting{false};
constinit std::atomic<bool> TorchHooks::wants_calls{false};
constinit std::atomic<std::uint32_t> TorchHooks::steps{0};

void TorchHooks::set_is_counting(bool on) noexcept {
  is_counting = on;
  if (on) {
    detail::follows_calls.fetch_or(1U);
  } else {
    detail::follows_calls.fetch_and(~1U);
  }
}

void TorchHooks::set_counting(Counting counting) noexcept {
  const std::lock_guard lock(mutex_);
  plan_ = CountingPlan(counting);
  wants_calls = counting == Counting::kFirst;
}

// Tells the plan of something, and does what it then wants.
template <typename Tell>
void TorchHooks::follow_plan(std::uint64_t key, Tell tell) noexcept {
  if (plan_.mode() == Counting::kOff) return;
  const std::lock_guard lock(mutex_);
  if (!enabled_) return;
  const bool was_on = plan_.is_on();
  try {
    tell(plan_);
  } catch (...) {  // no memory to remember it by: what follows is not counted
    plan_.abandon_step();
  }
  set_is_counting(plan_.is_on());
  if (plan_.is_on() != was_on) listen();
  if (ThreadState* thread = recorder::this_thread()) thread->note_counting(key, plan_.is_on());
}

void TorchHooks::end_steps() noexcept {
  if (plan_.mode() == Counting::kOff) return;
  const std::lock_guard lock(mutex_);
  if (!enabled_ || !plan_.is_on()) return;
  try {
    plan_.end_step();
  } catch (...) {  // no memory to remember it by
    plan_.abandon_step();
  }
  set_is_counting(false);
  listen();
}

void TorchHooks::begin_step() noexcept {
  steps.fetch_add(1, std::memory_order_relaxed);
  follow_plan(0, [](CountingPlan& plan) { plan.begin_step(); });
}

void TorchHooks::meet_call(std::uint64_t key) noexcept {
  follow_plan(key, [key](CountingPlan& plan) { plan.meet(key); });
}

std::uint64_t (*TorchHooks::thread_key() const)() { return &autograd_thread; }

// The whole price of an operator's record, PyTorch's part included. Recorded for nobody: no session
// is published yet.
double TorchHooks::measure_op_cost() {
  constexpr int kRounds = 5;
  constexpr int kOps = 200;
  const auto round = [] {
    const std::uint64_t start_ns = boottime_ns();
    for (int i = 0; i < kOps; ++i) {
      at::RecordFunction guard(at::RecordScope::FUNCTION);
      if (guard.isActive()) guard.before("layertrace::measure");
    }
    return static_cast<double>(boottime_ns() - start_ns) / kOps;
  };
  double idle_ns = 1e9;
  double active_ns = 1e9;
  for (int i = 0; i < kRounds; ++i) idle_ns = std::min(idle_ns, round());
  const recorder::Scratch scratch;
  enable(/*ops=*/true);
  for (int i = 0; i < kRounds; ++i) active_ns = std::min(active_ns, round());
  disable();
  return std::max(0.0, active_ns - idle_ns);
}

std::vector<DeviceSample> TorchHooks::sample_devices() { return sample_cuda_memory(); }

std::string TorchHooks::framework_version() const { return TORCH_VERSION; }

int TorchHooks::compute_threads() const { return at::get_num_threads(); }

std::vector<std::string> TorchHooks::notes() const {
  if (registry_ != nullptr && !registry_->is_of_libtorch()) return registry_->source().notes();
  if (interposed_) return {};
  return {
      "LibTorch's own layers are not seen, since layertrace comes after LibTorch in this program's "
      "lookup order: link "
      "layertrace::layertrace with CMake, or put liblayertrace.so before LibTorch's libraries"};
}

}  // namespace layertrace
