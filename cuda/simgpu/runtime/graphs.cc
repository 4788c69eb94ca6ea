// Graphs: how they are built by hand, made ready, changed and launched.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/api.h"
#include "runtime/capture.h"

using simgpu::failed;
using simgpu::Graph;
using simgpu::GraphExec;
using simgpu::machine;
using simgpu::Node;
using simgpu::ResourceChange;
using simgpu::stream_of;

namespace {

Graph* graph_of(cudaGraph_t handle) { return reinterpret_cast<Graph*>(handle); }
cudaGraph_t handle_of(Graph* graph) { return reinterpret_cast<cudaGraph_t>(graph); }
GraphExec* exec_of(cudaGraphExec_t handle) { return reinterpret_cast<GraphExec*>(handle); }
Node* node_of(cudaGraphNode_t handle) { return reinterpret_cast<Node*>(handle); }

int this_device() { return simgpu::this_thread().device; }

// A conditional's handle is its first value, and whether it has one.
constexpr cudaGraphConditionalHandle kHandle = cudaGraphConditionalHandle{1} << 63;
int first_value(cudaGraphConditionalHandle handle) { return static_cast<int>(handle & 0x7fffffff); }

void copy_box(const cudaMemcpy3DParms& p) {
  const auto at = [](const cudaPitchedPtr& base, const cudaPos& offset, std::size_t y,
                     std::size_t z) {
    return static_cast<std::byte*>(base.ptr) +
           ((offset.z + z) * base.ysize + offset.y + y) * base.pitch + offset.x;
  };
  for (std::size_t z = 0; z < p.extent.depth; ++z) {
    for (std::size_t y = 0; y < p.extent.height; ++y)
      std::memmove(at(p.dstPtr, p.dstPos, y, z), at(p.srcPtr, p.srcPos, y, z), p.extent.width);
  }
}

void set_box(const cudaMemsetParamsV2& p) {
  for (std::size_t y = 0; y < p.height; ++y) {
    auto* row = static_cast<std::byte*>(p.dst) + y * p.pitch;
    for (std::size_t x = 0; x < p.width; ++x)
      std::memcpy(row + x * p.elementSize, &p.value, p.elementSize);
  }
}

simgpu::CopyPath path_of(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return simgpu::CopyPath::kToDevice;
    case cudaMemcpyDeviceToHost:
      return simgpu::CopyPath::kToHost;
    case cudaMemcpyHostToHost:
      return simgpu::CopyPath::kOnHost;
    default:
      return simgpu::CopyPath::kWithin;
  }
}

// Fills in what the node does; the error if it is not known, or makes no sense.
cudaError_t describe(Node& node, cudaGraphNodeParams& parameters) {
  switch (parameters.type) {
    case cudaGraphNodeTypeKernel: {
      const cudaKernelNodeParamsV2& kernel = parameters.kernel;
      const simgpu::Kernel* known = machine().find_kernel(kernel.func);
      if (known == nullptr) return cudaErrorInvalidDeviceFunction;
      const dim3& grid = kernel.gridDim;
      const dim3& block = kernel.blockDim;
      node.kind = Node::Kind::kKernel;
      node.task = machine().kernel(*known, {.blocks = std::uint64_t{grid.x} * grid.y * grid.z,
                                            .threads = std::uint64_t{block.x} * block.y * block.z});
      std::copy_n(&grid.x, 3, node.task.activity.grid);
      std::copy_n(&block.x, 3, node.task.activity.block);
      node.task.activity.shared_bytes = kernel.sharedMemBytes;
      return cudaSuccess;
    }
    case cudaGraphNodeTypeMemcpy: {
      const cudaMemcpy3DParms copy = parameters.memcpy.copyParams;
      if (copy.srcArray != nullptr || copy.dstArray != nullptr) return cudaErrorNotSupported;
      node.kind = Node::Kind::kCopy;
      node.task = machine().copy(path_of(copy.kind),
                                 copy.extent.width * copy.extent.height * copy.extent.depth);
      node.effect = [copy] { copy_box(copy); };
      return cudaSuccess;
    }
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParamsV2 set = parameters.memset;
      const bool known = set.elementSize == 1 || set.elementSize == 2 || set.elementSize == 4;
      if (set.dst == nullptr || !known) return cudaErrorInvalidValue;
      node.kind = Node::Kind::kFill;
      node.task =
          machine().fill(static_cast<int>(set.value), set.width * set.height * set.elementSize);
      node.effect = [set] { set_box(set); };
      return cudaSuccess;
    }
    case cudaGraphNodeTypeHost:
      if (parameters.host.fn == nullptr) return cudaErrorInvalidValue;
      node.kind = Node::Kind::kHost;
      node.effect = [host = parameters.host] { host.fn(host.userData); };
      return cudaSuccess;
    case cudaGraphNodeTypeGraph:
      if (parameters.graph.graph == nullptr) return cudaErrorInvalidValue;
      node.kind = Node::Kind::kChild;
      node.bodies.push_back(machine().clone(*graph_of(parameters.graph.graph), this_device()));
      return cudaSuccess;
    case cudaGraphNodeTypeEmpty:
      node.kind = Node::Kind::kEmpty;
      return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
      node.kind = Node::Kind::kWaitEvent;
      node.event = reinterpret_cast<simgpu::Event*>(parameters.eventWait.event);
      return node.event != nullptr ? cudaSuccess : cudaErrorInvalidValue;
    case cudaGraphNodeTypeEventRecord:
      node.kind = Node::Kind::kRecordEvent;
      node.event = reinterpret_cast<simgpu::Event*>(parameters.eventRecord.event);
      return node.event != nullptr ? cudaSuccess : cudaErrorInvalidValue;
    default:
      return cudaErrorNotSupported;
  }
}

// Device code would set the condition; since none runs, it keeps its first value, and a loop is run
// through once.
cudaError_t describe_conditional(Node& node, cudaConditionalNodeParams& conditional,
                                 std::vector<cudaGraph_t>& bodies) {
  if (conditional.size == 0 || (conditional.handle & kHandle) == 0) return cudaErrorInvalidValue;
  const int value = first_value(conditional.handle);
  node.kind = Node::Kind::kConditional;
  node.chosen = conditional.type == cudaGraphCondTypeSwitch ? value : (value != 0 ? 0 : 1);
  for (unsigned i = 0; i < conditional.size; ++i) {
    auto body = std::make_unique<Graph>();
    body->id = machine().new_graph_id();
    bodies.push_back(handle_of(body.get()));
    node.bodies.push_back(std::move(body));
  }
  return cudaSuccess;
}

cudaError_t instantiate(cudaGraphExec_t* handle, cudaGraph_t graph) {
  if (handle == nullptr || graph == nullptr) return failed(cudaErrorInvalidValue);
  auto exec = machine().instantiate(*graph_of(graph), this_device());
  if (exec == nullptr) return failed(cudaErrorInvalidValue);
  *handle = reinterpret_cast<cudaGraphExec_t>(exec.release());
  return cudaSuccess;
}

// Hands out as many as the program has room for, or tells how many there are.
template <typename List>
cudaError_t hand_out(const List& list, cudaGraphNode_t* nodes, std::size_t* count) {
  if (count == nullptr) return failed(cudaErrorInvalidValue);
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {
      const Node* node = i < list.size() ? &*list[i] : nullptr;
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(const_cast<Node*>(node));
    }
    *count = std::min(*count, list.size());
  } else {
    *count = list.size();
  }
  return cudaSuccess;
}

cudaGraphNodeType type_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kKernel:
      return cudaGraphNodeTypeKernel;
    case Node::Kind::kCopy:
      return cudaGraphNodeTypeMemcpy;
    case Node::Kind::kFill:
      return cudaGraphNodeTypeMemset;
    case Node::Kind::kHost:
      return cudaGraphNodeTypeHost;
    case Node::Kind::kChild:
      return cudaGraphNodeTypeGraph;
    case Node::Kind::kEmpty:
      return cudaGraphNodeTypeEmpty;
    case Node::Kind::kWaitEvent:
      return cudaGraphNodeTypeWaitEvent;
    case Node::Kind::kRecordEvent:
      return cudaGraphNodeTypeEventRecord;
    case Node::Kind::kConditional:
      return cudaGraphNodeTypeConditional;
  }
  return cudaGraphNodeTypeEmpty;
}

// Where a node stands, for comparing what waits for what.
std::vector<std::size_t> places(const Graph& graph, const Node& node) {
  std::vector<std::size_t> result;
  for (const Node* each : node.after) {
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const auto& other) { return other.get() == each; });
    result.push_back(static_cast<std::size_t>(found - graph.nodes.begin()));
  }
  std::sort(result.begin(), result.end());
  return result;
}

// What keeps the second graph's nodes from taking the place of the first's.
cudaGraphExecUpdateResult difference(const Graph& graph, const Graph& other, const Node** at) {
  if (graph.nodes.size() != other.nodes.size()) return cudaGraphExecUpdateErrorTopologyChanged;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& mine = *graph.nodes[i];
    const Node& theirs = *other.nodes[i];
    *at = &theirs;
    if (mine.kind != theirs.kind) return cudaGraphExecUpdateErrorNodeTypeChanged;
    if (places(graph, mine) != places(other, theirs))
      return cudaGraphExecUpdateErrorTopologyChanged;
    if (mine.bodies.size() != theirs.bodies.size()) return cudaGraphExecUpdateErrorNotSupported;
    for (std::size_t body = 0; body < mine.bodies.size(); ++body) {
      const auto inner = difference(*mine.bodies[body], *theirs.bodies[body], at);
      if (inner != cudaGraphExecUpdateSuccess) return inner;
    }
  }
  *at = nullptr;
  return cudaGraphExecUpdateSuccess;
}

void update(Graph& graph, const Graph& other) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& mine = *graph.nodes[i];
    const Node& theirs = *other.nodes[i];
    mine.task = theirs.task;
    mine.effect = theirs.effect;
    mine.event = theirs.event;
    mine.chosen = theirs.chosen;
    for (std::size_t body = 0; body < mine.bodies.size(); ++body)
      update(*mine.bodies[body], *theirs.bodies[body]);
  }
}

}  // namespace

// ---- Graphs and their nodes ----

SIMGPU_API cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  SIMGPU_CALL(call, cudaGraphCreate_v10000, graph, flags);
  if (graph == nullptr || flags != 0) return failed(cudaErrorInvalidValue);
  auto* made = new Graph;
  made->id = machine().new_graph_id();
  machine().tell(
      {.kind = ResourceChange::Kind::kGraphCreated, .device = this_device(), .graph = made});
  *graph = handle_of(made);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  SIMGPU_CALL(call, cudaGraphClone_v10000, clone, graph);
  if (clone == nullptr || graph == nullptr) return failed(cudaErrorInvalidValue);
  *clone = handle_of(machine().clone(*graph_of(graph), this_device()).release());
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  SIMGPU_CALL(call, cudaGraphDestroy_v10000, graph);
  if (graph == nullptr) return failed(cudaErrorInvalidValue);
  machine().tell({.kind = ResourceChange::Kind::kGraphGoes,
                  .device = this_device(),
                  .graph = graph_of(graph)});
  delete graph_of(graph);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGraphAddNode(cudaGraphNode_t* handle, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies,
                                        const cudaGraphEdgeData* dependencyData, std::size_t count,
                                        cudaGraphNodeParams* parameters) {
  SIMGPU_CALL(call, cudaGraphAddNode_v12030, handle, graph, dependencies, dependencyData, count,
              parameters);
  if (handle == nullptr || graph == nullptr || parameters == nullptr ||
      (dependencies == nullptr && count != 0))
    return failed(cudaErrorInvalidValue);
  auto node = std::make_unique<Node>();
  std::vector<cudaGraph_t> bodies;
  const cudaError_t described = parameters->type == cudaGraphNodeTypeConditional
                                    ? describe_conditional(*node, parameters->conditional, bodies)
                                    : describe(*node, *parameters);
  if (described != cudaSuccess) return failed(described);
  for (std::size_t i = 0; i < count; ++i) node->after.push_back(node_of(dependencies[i]));
  Node& added = machine().add_node(*graph_of(graph), std::move(node), this_device());
  if (!bodies.empty()) {
    // The array is CUDA's, for as long as the node lives: the effect keeps it.
    auto kept = std::make_shared<std::vector<cudaGraph_t>>(std::move(bodies));
    parameters->conditional.phGraph_out = kept->data();
    added.effect = [kept] {};
  }
  *handle = reinterpret_cast<cudaGraphNode_t>(&added);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle,
                                                        cudaGraph_t graph, unsigned value,
                                                        unsigned flags) {
  SIMGPU_CALL(call, cudaGraphConditionalHandleCreate_v12030, handle, graph, value, flags);
  if (handle == nullptr || graph == nullptr) return failed(cudaErrorInvalidValue);
  *handle = kHandle | (flags == cudaGraphCondAssignDefault ? value : 0);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                                         std::size_t* count) {
  SIMGPU_CALL(call, cudaGraphGetNodes_v10000, graph, nodes, count);
  if (graph == nullptr) return failed(cudaErrorInvalidValue);
  return hand_out(graph_of(graph)->nodes, nodes, count);
}

SIMGPU_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                                    cudaGraphNode_t* dependencies,
                                                    cudaGraphEdgeData* edgeData,
                                                    std::size_t* count) {
  SIMGPU_CALL(call, cudaGraphNodeGetDependencies_v12030, node, dependencies, edgeData, count);
  if (node == nullptr) return failed(cudaErrorInvalidValue);
  if (edgeData != nullptr && count != nullptr) std::fill_n(edgeData, *count, cudaGraphEdgeData{});
  return hand_out(node_of(node)->after, dependencies, count);
}

SIMGPU_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  SIMGPU_CALL(call, cudaGraphNodeGetType_v10000, node, type);
  if (node == nullptr || type == nullptr) return failed(cudaErrorInvalidValue);
  *type = type_of(*node_of(node));
  return cudaSuccess;
}

// ---- What can be launched ----

SIMGPU_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                            unsigned long long flags) {
  SIMGPU_CALL(call, cudaGraphInstantiate_v12000, exec, graph, flags);
  return instantiate(exec, graph);
}

SIMGPU_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                     unsigned long long flags) {
  SIMGPU_CALL(call, cudaGraphInstantiateWithFlags_v11040, exec, graph, flags);
  return instantiate(exec, graph);
}

SIMGPU_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                           cudaGraphExecUpdateResultInfo* info) {
  SIMGPU_CALL(call, cudaGraphExecUpdate_v10020, exec, graph, info);
  if (exec == nullptr || graph == nullptr || info == nullptr) return failed(cudaErrorInvalidValue);
  const Node* at = nullptr;
  *info = {};
  info->result = difference(*exec_of(exec)->graph, *graph_of(graph), &at);
  info->errorNode = reinterpret_cast<cudaGraphNode_t>(const_cast<Node*>(at));
  if (info->result != cudaGraphExecUpdateSuccess) return failed(cudaErrorGraphExecUpdateFailure);
  update(*exec_of(exec)->graph, *graph_of(graph));
  exec_of(exec)->plan = simgpu::plan_of(*exec_of(exec)->graph);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  SIMGPU_CALL(call, cudaGraphExecDestroy_v10000, exec);
  if (exec == nullptr) return failed(cudaErrorInvalidValue);
  machine().tell(
      {.kind = ResourceChange::Kind::kExecGoes, .device = this_device(), .exec = exec_of(exec)});
  delete exec_of(exec);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  SIMGPU_CALL(call, cudaGraphUpload_v10000, exec, stream);
  return exec != nullptr ? cudaSuccess : failed(cudaErrorInvalidValue);
}

SIMGPU_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  SIMGPU_CALL(call, cudaGraphLaunch_v10000, exec, handle);
  if (exec == nullptr) return failed(cudaErrorInvalidValue);
  simgpu::Stream& stream = stream_of(handle);
  if (is_capturing(stream)) {
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::kChild;
    node->bodies.push_back(machine().clone(*exec_of(exec)->graph, this_device()));
    return simgpu::keep(stream, std::move(node));
  }
  if (const cudaError_t error = simgpu::allowed_on(stream); error != cudaSuccess)
    return failed(error);
  if (!machine().count_launch()) return failed(cudaErrorLaunchFailure);
  machine().run(stream, *exec_of(exec), call.correlation());
  return cudaSuccess;
}

// ---- What graphs keep ----

SIMGPU_API cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer,
                                            cudaHostFn_t destroy, unsigned references,
                                            unsigned flags) {
  SIMGPU_CALL(call, cudaUserObjectCreate_v11030, object, pointer, destroy, references, flags);
  if (object == nullptr || destroy == nullptr || references == 0)
    return failed(cudaErrorInvalidValue);
  *object =
      reinterpret_cast<cudaUserObject_t>(new simgpu::UserObject(pointer, destroy, references));
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  SIMGPU_CALL(call, cudaUserObjectRelease_v11030, object, count);
  if (object == nullptr || count == 0) return failed(cudaErrorInvalidValue);
  reinterpret_cast<simgpu::UserObject*>(object)->release(count);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                                 unsigned count, unsigned flags) {
  SIMGPU_CALL(call, cudaGraphRetainUserObject_v11030, graph, object, count, flags);
  if (graph == nullptr || object == nullptr || count == 0) return failed(cudaErrorInvalidValue);
  auto* kept = reinterpret_cast<simgpu::UserObject*>(object);
  if (flags != cudaGraphUserObjectMove) kept->retain(count);
  for (unsigned i = 0; i < count; ++i) graph_of(graph)->user_objects.push_back(kept);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDeviceGetGraphMemAttribute(int device,
                                                      cudaGraphMemAttributeType attribute,
                                                      void* value) {
  SIMGPU_CALL(call, cudaDeviceGetGraphMemAttribute_v11040, device, attribute, value);
  if (value == nullptr) return failed(cudaErrorInvalidValue);
  if (!simgpu::is_device(device)) return failed(cudaErrorInvalidDevice);
  *static_cast<std::uint64_t*>(value) = 0;  // graphs here own no memory
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDeviceSetGraphMemAttribute(int device,
                                                      cudaGraphMemAttributeType attribute,
                                                      void* value) {
  SIMGPU_CALL(call, cudaDeviceSetGraphMemAttribute_v11040, device, attribute, value);
  if (value == nullptr) return failed(cudaErrorInvalidValue);
  return simgpu::is_device(device) ? cudaSuccess : failed(cudaErrorInvalidDevice);
}
