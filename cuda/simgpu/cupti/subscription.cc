#include "cupti/subscription.h"

#include "core/machine.h"
#include "cupti/names.h"
#include "cupti/records.h"

namespace simgpu::cupti {
namespace {

// None where there is no device.
CUcontext context_of(int device) {
  Machine& machine = Machine::instance();
  return device < machine.device_count() ? reinterpret_cast<CUcontext>(&machine.device(device))
                                         : nullptr;
}

CUgraphNodeType type_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kKernel:
      return CU_GRAPH_NODE_TYPE_KERNEL;
    case Node::Kind::kCopy:
      return CU_GRAPH_NODE_TYPE_MEMCPY;
    case Node::Kind::kFill:
      return CU_GRAPH_NODE_TYPE_MEMSET;
    case Node::Kind::kHost:
      return CU_GRAPH_NODE_TYPE_HOST;
    case Node::Kind::kChild:
      return CU_GRAPH_NODE_TYPE_GRAPH;
    case Node::Kind::kEmpty:
      return CU_GRAPH_NODE_TYPE_EMPTY;
    case Node::Kind::kWaitEvent:
      return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case Node::Kind::kRecordEvent:
      return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case Node::Kind::kConditional:
      return CU_GRAPH_NODE_TYPE_CONDITIONAL;
  }
  return CU_GRAPH_NODE_TYPE_EMPTY;
}

std::uint32_t id_of(ResourceChange::Kind kind) {
  switch (kind) {
    case ResourceChange::Kind::kContextCreated:
      return CUPTI_CBID_RESOURCE_CONTEXT_CREATED;
    case ResourceChange::Kind::kStreamCreated:
      return CUPTI_CBID_RESOURCE_STREAM_CREATED;
    case ResourceChange::Kind::kStreamGoes:
      return CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
    case ResourceChange::Kind::kGraphCreated:
      return CUPTI_CBID_RESOURCE_GRAPH_CREATED;
    case ResourceChange::Kind::kGraphCloned:
      return CUPTI_CBID_RESOURCE_GRAPH_CLONED;
    case ResourceChange::Kind::kGraphGoes:
      return CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING;
    case ResourceChange::Kind::kNodeCreated:
      return CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED;
    case ResourceChange::Kind::kNodeCloned:
      return CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
    case ResourceChange::Kind::kDependencyCreated:
      return CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED;
    case ResourceChange::Kind::kExecStarts:
      return CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING;
    case ResourceChange::Kind::kExecCreated:
      return CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED;
    case ResourceChange::Kind::kExecGoes:
      return CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING;
  }
  return CUPTI_CBID_RESOURCE_INVALID;
}

template <typename Handle, typename T>
Handle handle_of(const T* object) {
  return reinterpret_cast<Handle>(const_cast<T*>(object));
}

}  // namespace

bool Subscription::subscribe(CUpti_CallbackFunc callback, void* data) {
  const std::lock_guard lock(mutex_);
  if (is_active()) return false;
  data_ = data;
  callback_ = callback;
  return true;
}

void Subscription::unsubscribe() {
  callback_ = nullptr;
  for (auto& domain : enabled_) {
    for (auto& each : domain) each.store(false, std::memory_order_relaxed);
  }
}

void Subscription::call(CUpti_CallbackDomain domain, std::uint32_t id, const void* data) const {
  if (const auto callback = callback_.load()) callback(data_.load(), domain, id, data);
}

void Subscription::call_back(ApiCall& api_call, CUpti_ApiCallbackSite site) {
  const CUpti_CallbackDomain domain = domain_of(api_call.api);
  if (!enabled(domain, api_call.id)) return;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = function_name(api_call.function);
  data.functionParams = api_call.parameters;
  data.functionReturnValue = site == CUPTI_API_EXIT ? &api_call.result : nullptr;
  data.symbolName = api_call.kernel;
  data.context = context_of(api_call.device);
  data.contextUid = context_id(api_call.device);
  data.correlationData = &api_call.observer_data;
  data.correlationId = api_call.correlation;
  call(domain, api_call.id, &data);
}

void Subscription::on_synchronization(const Synchronization& synchronization) {
  std::uint32_t id = CUPTI_CBID_SYNCHRONIZE_INVALID;
  if (synchronization.kind == Synchronization::Kind::kStream)
    id = CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED;
  if (synchronization.kind == Synchronization::Kind::kDevice)
    id = CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED;
  if (!enabled(CUPTI_CB_DOMAIN_SYNCHRONIZE, id)) return;
  CUpti_SynchronizeData data{};
  data.context = context_of(synchronization.device);
  call(CUPTI_CB_DOMAIN_SYNCHRONIZE, id, &data);
}

void Subscription::on_resource(const ResourceChange& change) {
  const std::uint32_t id = id_of(change.kind);
  if (!enabled(CUPTI_CB_DOMAIN_RESOURCE, id)) return;
  CUpti_GraphData graph{};
  graph.graph = handle_of<CUgraph>(change.graph);
  graph.originalGraph = handle_of<CUgraph>(change.original_graph);
  graph.node = handle_of<CUgraphNode>(change.node);
  graph.originalNode = handle_of<CUgraphNode>(change.original_node);
  graph.dependency = handle_of<CUgraphNode>(change.dependency);
  graph.graphExec = handle_of<CUgraphExec>(change.exec);
  if (change.node != nullptr) graph.nodeType = type_of(*change.node);
  CUpti_ResourceData data{};
  data.context = context_of(change.device);
  data.resourceHandle.stream = handle_of<CUstream>(change.stream);
  const bool of_graph = change.graph != nullptr || change.exec != nullptr;
  data.resourceDescriptor = of_graph ? &graph : nullptr;
  call(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

}  // namespace simgpu::cupti
