// The client of CUPTI, over a fake of it: what it makes of refusals and of graphs.
#include "activity/cupti_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

#include "cuda/activity/kept_records.h"

namespace layertrace::cuda {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// What CUPTI's functions, which are plain pointers, work on. One at a time.
struct FakeCupti {
  CUptiResult enable_result = CUPTI_SUCCESS;
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> callbacks;
  std::set<CUpti_ActivityKind> kinds;

  static FakeCupti* current;
};
FakeCupti* FakeCupti::current = nullptr;

CuptiLibrary fake_library() {
  CuptiLibrary library;
  library.version = 130200;
  library.subscribe = [](CUpti_SubscriberHandle*, CUpti_CallbackFunc callback, void* user) {
    FakeCupti::current->callback = callback;
    FakeCupti::current->user = user;
    return CUPTI_SUCCESS;
  };
  library.unsubscribe = [](CUpti_SubscriberHandle) { return CUPTI_SUCCESS; };
  library.register_callbacks = [](CUpti_BuffersCallbackRequestFunc,
                                  CUpti_BuffersCallbackCompleteFunc) { return CUPTI_SUCCESS; };
  library.register_timestamp_callback = [](CUpti_TimestampCallbackFunc) { return CUPTI_SUCCESS; };
  library.enable = [](CUpti_ActivityKind kind) {
    FakeCupti& cupti = *FakeCupti::current;
    if (cupti.enable_result == CUPTI_SUCCESS) cupti.kinds.insert(kind);
    return cupti.enable_result;
  };
  library.disable = [](CUpti_ActivityKind kind) {
    FakeCupti::current->kinds.erase(kind);
    return CUPTI_SUCCESS;
  };
  library.enable_callback = [](std::uint32_t on, CUpti_SubscriberHandle,
                               CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    auto& callbacks = FakeCupti::current->callbacks;
    if (on != 0) {
      callbacks.insert({domain, id});
    } else {
      callbacks.erase({domain, id});
    }
    return CUPTI_SUCCESS;
  };
  library.callback_name = [](CUpti_CallbackDomain, std::uint32_t, const char**) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  };
  library.push_id = [](CUpti_ExternalCorrelationKind, std::uint64_t) { return CUPTI_SUCCESS; };
  library.pop_id = [](CUpti_ExternalCorrelationKind, std::uint64_t*) { return CUPTI_SUCCESS; };
  library.flush_all = [](std::uint32_t) { return CUPTI_SUCCESS; };
  library.dropped_records = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = 0;
    return CUPTI_SUCCESS;
  };
  // A node's handle is its id.
  library.graph_node_id = [](CUgraphNode node, std::uint64_t* id) {
    *id = reinterpret_cast<std::uintptr_t>(node);
    return CUPTI_SUCCESS;
  };
  return library;
}

class CuptiActivityTest : public ::testing::Test {
 protected:
  FakeCupti cupti_;
  const CuptiLibrary library_ = fake_library();

  void SetUp() override {
    FakeCupti::current = &cupti_;
    layertrace::detail::recording = 1;
  }
  void TearDown() override { layertrace::detail::recording = 0; }

  // As CUPTI calls back, if that was asked for.
  void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    if (cupti_.callbacks.contains({domain, id})) cupti_.callback(cupti_.user, domain, id, data);
  }
  void resource(CUpti_CallbackId id, std::uintptr_t node = 0, std::uintptr_t original = 0) {
    CUpti_GraphData graph{};
    graph.node = reinterpret_cast<CUgraphNode>(node);
    graph.originalNode = reinterpret_cast<CUgraphNode>(original);
    CUpti_ResourceData data{};
    data.resourceDescriptor = &graph;
    call_back(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
  }
  void instantiate(bool succeeds, std::uintptr_t node) {
    constexpr CUpti_CallbackId kCall =
        CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithFlags_v11040;
    CUpti_CallbackData data{};
    data.callbackSite = CUPTI_API_ENTER;
    call_back(CUPTI_CB_DOMAIN_RUNTIME_API, kCall, &data);
    resource(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING);
    resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node);
    if (succeeds) resource(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
    data.callbackSite = CUPTI_API_EXIT;
    call_back(CUPTI_CB_DOMAIN_RUNTIME_API, kCall, &data);
  }
  static std::vector<std::uint64_t> nodes_of(CuptiActivity& activity) {
    test::KeptRecords kept;
    activity.drain(kept, false);
    std::vector<std::uint64_t> nodes;
    for (const DeviceGraphNode& node : kept.nodes) nodes.push_back(node.node);
    return nodes;
  }
};

TEST_F(CuptiActivityTest, LeavesNothingBehind) {
  CuptiActivity activity(library_);
  ASSERT_TRUE(activity.start());
  EXPECT_FALSE(cupti_.callbacks.empty());
  ASSERT_TRUE(activity.enable());
  EXPECT_TRUE(cupti_.kinds.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  activity.close();
  EXPECT_THAT(cupti_.callbacks, IsEmpty());
  EXPECT_THAT(cupti_.kinds, IsEmpty());
}

TEST_F(CuptiActivityTest, TellsWhyItWasRefusedAtTheStartAndLater) {
  cupti_.enable_result = CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED;
  CuptiActivity at_once(library_);
  const auto started = at_once.start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message(), HasSubstr("MIG"));
  cupti_.enable_result = CUPTI_SUCCESS;
  CuptiActivity later(library_);
  ASSERT_TRUE(later.start());
  cupti_.enable_result = CUPTI_ERROR_DISABLED;
  const auto enabled = later.enable();
  ASSERT_FALSE(enabled);
  EXPECT_THAT(enabled.error().message(), HasSubstr("another profiler has disabled it (23)"));
  EXPECT_THAT(cupti_.kinds, IsEmpty());
}

// Copies know their scope by their originals.
TEST_F(CuptiActivityTest, TakesNodesThatAreCapturedAndNoneOfAnInstantiation) {
  CuptiActivity activity(library_);
  ASSERT_TRUE(activity.start());
  activity.push(100);
  resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 1);
  instantiate(/*succeeds=*/true, 2);
  resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 3);
  activity.pop(0);
  resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 4);  // in no scope
  EXPECT_EQ(nodes_of(activity), (std::vector<std::uint64_t>{1, 3}));
}

TEST_F(CuptiActivityTest, TakesNodesAgainAfterAnInstantiationThatFailed) {
  CuptiActivity activity(library_);
  ASSERT_TRUE(activity.start());
  activity.push(100);
  instantiate(/*succeeds=*/false, 1);
  resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 2);
  activity.pop(0);
  EXPECT_EQ(nodes_of(activity), std::vector<std::uint64_t>{2});
}

// Nobody told it of the end.
TEST_F(CuptiActivityTest, TakesNodesThoughAnotherSessionEndedDuringAnInstantiation) {
  {
    CuptiActivity before(library_);
    ASSERT_TRUE(before.start());
    resource(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING);
  }
  CuptiActivity activity(library_);
  ASSERT_TRUE(activity.start());
  activity.push(100);
  resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 1);
  activity.pop(0);
  EXPECT_EQ(nodes_of(activity), std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace layertrace::cuda
