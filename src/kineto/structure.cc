#include "kineto/structure.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "kineto/waits.h"

namespace layertrace::kineto {
namespace {

constexpr std::uint32_t kNoModule = 0xffffffffU;
constexpr std::size_t kMostLevels = 200;

// "Linear" of "Linear_10".
std::string class_of(std::string_view module) {
  const std::size_t last = module.find_last_not_of("0123456789");
  const bool numbered =
      last != std::string_view::npos && last + 1 < module.size() && module[last] == '_' && last > 0;
  return std::string(numbered ? module.substr(0, last) : module);
}

bool is_loss(std::string_view module) {
  return module.find("Loss") != std::string_view::npos ||
         module.find("Criterion") != std::string_view::npos;
}

// Goes over the events once, with a stack for each thread.
class Survey {
 public:
  explicit Survey(const Trace& trace)
      : trace_(trace), lanes_(trace.threads.size()), parents_(trace.modules.size()) {}

  void add(const HostEvent& event);
  Structure finish();

 private:
  struct Open {
    std::int64_t end_ns;
    std::uint32_t module;  // it, or the one around it
    bool in_backward;      // it is a node of autograd, or in one
    bool is_node = false;
    bool holds_operators = false;
    bool makes_nodes = false;  // some of them do
  };
  struct Lane {
    std::vector<Open> open;
    std::int64_t model_end_ns = 0;  // of the last outermost module; 0 once that is answered
  };
  // Where a module is called: inside which, and how sure that is.
  struct Parent {
    std::uint32_t module = kNoModule;
    bool seen = false;
    bool in_forward = false;
  };

  static Open around(Lane& lane, std::int64_t ns);
  void add_module(Lane& lane, const HostEvent& event);
  void add_node(const HostEvent& event);
  void add_operator(Lane& lane, const HostEvent& event);
  void begin_backward(std::int64_t ns);
  bool is_around(std::uint32_t module, std::uint32_t inner) const;
  LayerId define(Structure& structure, std::uint32_t module,
                 std::unordered_set<std::string>& paths);
  void take_steps(Structure& structure);

  const Trace& trace_;
  std::vector<Lane> lanes_;
  std::vector<Parent> parents_;
  std::vector<std::uint32_t> order_;  // in which modules are first called
  std::vector<StepMark> steps_;
  std::vector<Stretch> losses_;
  std::size_t nodes_with_operators_ = 0;
  std::size_t nodes_that_make_nodes_ = 0;
  std::vector<std::size_t> depths_;     // of the layers
  std::vector<std::uint16_t> pending_;  // threads on which a model's forward is over
};

void Survey::add(const HostEvent& event) {
  Lane& lane = lanes_[event.thread];
  switch (event.kind) {
    case HostKind::kModule:
      return add_module(lane, event);
    case HostKind::kPass:
      return begin_backward(event.start_ns);
    case HostKind::kOperator: {
      const NameMeaning& meaning = trace_.names.meaning(NameId{event.name});
      if (meaning.kind == NameKind::kEvaluation || meaning.kind == NameKind::kNode) {
        add_node(event);
      } else {
        add_operator(lane, event);
      }
      return;
    }
    case HostKind::kAnnotation: {
      const NameMeaning& meaning = trace_.names.meaning(NameId{event.name});
      if (meaning.kind == NameKind::kStep)
        steps_.push_back({event.start_ns, event.end_ns, meaning.step, event.thread});
      // Clearing the gradients between the forward and the loss only interrupts it.
      const bool is_zero_grad =
          trace_.names.text(NameId{event.name}).starts_with("Optimizer.zero_grad#");
      const bool ends_loss = meaning.kind == NameKind::kStep ||
                             meaning.phase == Phase::kOptimizer || meaning.phase == Phase::kData;
      if (ends_loss && !is_zero_grad) lane.model_end_ns = 0;
      return;
    }
    default:
      return;
  }
}

Survey::Open Survey::around(Lane& lane, std::int64_t ns) {
  auto& open = lane.open;
  while (!open.empty() && open.back().end_ns <= ns) open.pop_back();
  return open.empty() ? Open{0, kNoModule, false} : open.back();
}

void Survey::add_node(const HostEvent& event) {
  begin_backward(event.start_ns);
  Lane& lane = lanes_[event.thread];
  const Open outer = around(lane, event.start_ns);
  lane.open.push_back({event.end_ns, outer.module, true, /*is_node=*/true});
}

void Survey::add_operator(Lane& lane, const HostEvent& event) {
  if (!around(lane, event.start_ns).is_node) return;
  Open& node = lane.open.back();
  if (!std::exchange(node.holds_operators, true)) ++nodes_with_operators_;
  const bool makes_node = sequence_of(event) != 0 && forward_thread_of(event) == 0;
  if (makes_node && !std::exchange(node.makes_nodes, true)) ++nodes_that_make_nodes_;
}

void Survey::begin_backward(std::int64_t ns) {
  std::erase_if(pending_, [&](std::uint16_t thread) {
    if (lanes_[thread].model_end_ns > ns) return false;  // a backward within the forward
    const std::int64_t from_ns = std::exchange(lanes_[thread].model_end_ns, 0);
    if (from_ns != 0 && from_ns < ns) losses_.push_back({from_ns, ns, thread});
    return true;
  });
}

bool Survey::is_around(std::uint32_t module, std::uint32_t inner) const {
  for (; inner != kNoModule; inner = parents_[inner].module) {
    if (inner == module) return true;
  }
  return false;
}

void Survey::add_module(Lane& lane, const HostEvent& event) {
  const Open outer = around(lane, event.start_ns);
  const std::uint32_t module = event.name;
  Parent& parent = parents_[module];
  // The first that calls it; but what runs again in a backward is called by nobody in particular.
  const bool is_better =
      !parent.seen || (!outer.in_backward && (!parent.in_forward || parent.module == kNoModule));
  const bool would_turn = outer.module == module || (parent.seen && outer.module != kNoModule &&
                                                     is_around(module, outer.module));
  if (is_better && !would_turn) {
    if (outer.module != kNoModule) parent.module = outer.module;
    parent.in_forward = parent.in_forward || !outer.in_backward;
  }
  if (!std::exchange(parent.seen, true)) order_.push_back(module);
  const bool is_outermost = outer.module == kNoModule && !outer.in_backward;
  if (is_outermost && !is_loss(trace_.modules[module])) {
    if (lane.model_end_ns == 0) pending_.push_back(event.thread);
    lane.model_end_ns = event.end_ns;
  }
  lane.open.push_back({event.end_ns, module, outer.in_backward});
}

LayerId Survey::define(Structure& structure, std::uint32_t module,
                       std::unordered_set<std::string>& paths) {
  // From the outermost that is not defined yet; there may be very many levels.
  std::vector<std::uint32_t> chain;
  for (std::uint32_t each = module;
       each != kNoModule && structure.layer_of_module[each] == kNoLayer;
       each = parents_[each].module) {
    chain.push_back(each);
  }
  for (; !chain.empty(); chain.pop_back()) {
    const std::uint32_t each = chain.back();
    const std::uint32_t parent = parents_[each].module;
    LayerDef layer;
    layer.name = trace_.modules[each];
    layer.type = class_of(layer.name);
    layer.path = layer.name;
    layer.registered = parent != kNoModule || !is_loss(layer.name);
    std::size_t depth = 0;
    if (parent != kNoModule) {
      layer.parent = structure.layer_of_module[parent];
      // What is deeper still lies side by side: paths of all levels would fill the memory.
      if (depths_[index(layer.parent)] >= kMostLevels)
        layer.parent = structure.layers[index(layer.parent)].parent;
      depth = depths_[index(layer.parent)] + 1;
      layer.path = structure.layers[index(layer.parent)].path + "." + layer.name;
    }
    while (!paths.insert(layer.path).second) layer.path += "'";
    structure.layer_of_module[each] = LayerId{static_cast<std::uint32_t>(structure.layers.size())};
    structure.layers.push_back(std::move(layer));
    depths_.push_back(depth);
  }
  return structure.layer_of_module[module];
}

// On the thread that has most of them.
void Survey::take_steps(Structure& structure) {
  std::vector<std::size_t> counts(lanes_.size());
  for (const StepMark& step : steps_) ++counts[step.thread];
  const auto most = std::ranges::max_element(counts);
  if (most == counts.end()) return;
  const auto thread = static_cast<std::uint16_t>(most - counts.begin());
  for (const StepMark& step : steps_) {
    const bool follows =
        structure.steps.empty() || (step.start_ns >= structure.steps.back().end_ns &&
                                    step.index > structure.steps.back().index);
    if (step.thread == thread && follows && step.end_ns > step.start_ns)
      structure.steps.push_back(step);
  }
}

Structure Survey::finish() {
  Structure structure;
  structure.layer_of_module.assign(trace_.modules.size(), kNoLayer);
  structure.has_modules = !order_.empty();
  structure.recomputes = 2 * nodes_that_make_nodes_ < nodes_with_operators_;
  std::unordered_set<std::string> paths;
  for (const std::uint32_t module : order_) define(structure, module, paths);
  take_steps(structure);
  structure.stretches = std::move(losses_);
  const std::vector<Stretch> waits = find_waits(trace_);
  structure.stretches.insert(structure.stretches.end(), waits.begin(), waits.end());
  std::ranges::stable_sort(structure.stretches, {}, &Stretch::start_ns);
  return structure;
}

}  // namespace

Structure find_structure(const Trace& trace) {
  Survey survey(trace);
  for (const HostEvent& event : trace.host) survey.add(event);
  return survey.finish();
}

}  // namespace layertrace::kineto
