// The client of CUPTI, over a fake of it: what it makes of refusals and of graphs.
#include "activity/cupti_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

#include "cuda/activity/kept_records.h"

namespace layertrace::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What CUPTI's functions, which are plain pointers, work on. One at a time.
struct FakeCupti {
  CUptiResult enable_result = CUPTI_SUCCESS;
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> callbacks;
  std::set<CUpti_ActivityKind> kinds;
  std::set<CUpti_CallbackId> calls_off;  // of the runtime's functions, while its kind is on
  std::set<CUpti_CallbackId> calls_on;   // without it, of which some CUPTI makes nothing
  CUpti_ActivityThreadIdType thread_ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::size_t dropped = 0;
  CUptiResult end_of_buffer = CUPTI_ERROR_MAX_LIMIT_REACHED;
  bool subscribed = false;

  static FakeCupti* current;
};
FakeCupti* FakeCupti::current = nullptr;

constexpr CUpti_CallbackId kLaunch = 1;
constexpr CUpti_CallbackId kMalloc = 2;

CuptiLibrary fake_library() {
  CuptiLibrary library;
  library.version = 130200;
  library.subscribe = [](CUpti_SubscriberHandle*, CUpti_CallbackFunc callback, void* user) {
    FakeCupti::current->callback = callback;
    FakeCupti::current->user = user;
    FakeCupti::current->subscribed = true;
    return CUPTI_SUCCESS;
  };
  library.unsubscribe = [](CUpti_SubscriberHandle) {
    FakeCupti::current->subscribed = false;
    return CUPTI_SUCCESS;
  };
  library.register_callbacks = [](CUpti_BuffersCallbackRequestFunc request,
                                  CUpti_BuffersCallbackCompleteFunc complete) {
    FakeCupti::current->request = request;
    FakeCupti::current->complete = complete;
    return CUPTI_SUCCESS;
  };
  library.get_thread_id_type = [](CUpti_ActivityThreadIdType* type) {
    *type = FakeCupti::current->thread_ids;
    return CUPTI_SUCCESS;
  };
  library.set_thread_id_type = [](CUpti_ActivityThreadIdType type) {
    FakeCupti::current->thread_ids = type;
    return CUPTI_SUCCESS;
  };
  library.enable_runtime_call = [](CUpti_CallbackId id, std::uint8_t on) {
    FakeCupti& cupti = *FakeCupti::current;
    if (cupti.kinds.contains(CUPTI_ACTIVITY_KIND_RUNTIME)) {
      on != 0 ? void(cupti.calls_off.erase(id)) : void(cupti.calls_off.insert(id));
    } else {
      on != 0 ? void(cupti.calls_on.insert(id)) : void(cupti.calls_on.erase(id));
    }
    return CUPTI_SUCCESS;
  };
  library.enable_driver_call = [](CUpti_CallbackId, std::uint8_t) { return CUPTI_SUCCESS; };
  library.next_record = [](std::uint8_t*, std::size_t, CUpti_Activity**) {
    return FakeCupti::current->end_of_buffer;
  };
  library.register_timestamp_callback = [](CUpti_TimestampCallbackFunc) { return CUPTI_SUCCESS; };
  library.enable = [](CUpti_ActivityKind kind) {
    FakeCupti& cupti = *FakeCupti::current;
    if (cupti.enable_result == CUPTI_SUCCESS) cupti.kinds.insert(kind);
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) cupti.calls_off.clear();  // it overrides
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
  library.callback_name = [](CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
    if (domain != CUPTI_CB_DOMAIN_RUNTIME_API) return CUPTI_ERROR_INVALID_PARAMETER;
    if (id == kLaunch) *name = "cudaLaunchKernel_v7000";
    if (id == kMalloc) *name = "cudaMalloc_v3020";
    return id == kLaunch || id == kMalloc ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
  };
  library.push_id = [](CUpti_ExternalCorrelationKind, std::uint64_t) { return CUPTI_SUCCESS; };
  library.pop_id = [](CUpti_ExternalCorrelationKind, std::uint64_t*) { return CUPTI_SUCCESS; };
  library.flush_all = [](std::uint32_t) { return CUPTI_SUCCESS; };
  library.dropped_records = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = std::exchange(FakeCupti::current->dropped, 0);
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
  EXPECT_THAT(cupti_.calls_on, IsEmpty());
  EXPECT_EQ(cupti_.thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
  EXPECT_FALSE(cupti_.subscribed);
}

// Single functions without their kind are recorded by the documentation, not by every CUPTI.
TEST_F(CuptiActivityTest, LeavesFunctionsOutOfTheirKindAtEachWindow) {
  CuptiActivity activity(library_);
  ASSERT_TRUE(activity.start());
  for (int window = 0; window < 2; ++window) {
    ASSERT_TRUE(activity.enable());
    EXPECT_TRUE(cupti_.kinds.contains(CUPTI_ACTIVITY_KIND_RUNTIME));
    EXPECT_TRUE(cupti_.kinds.contains(CUPTI_ACTIVITY_KIND_DRIVER));
    EXPECT_THAT(cupti_.calls_off, ElementsAre(kMalloc));
    activity.disable();
    EXPECT_THAT(cupti_.kinds, IsEmpty());
    EXPECT_THAT(cupti_.calls_on, IsEmpty());
  }
}

TEST_F(CuptiActivityTest, AsksForTheSystemsThreadIds) {
  CuptiActivity activity(library_);
  ASSERT_TRUE(activity.start());
  EXPECT_EQ(cupti_.thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  activity.close();
  EXPECT_EQ(cupti_.thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
  cupti_.thread_ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;  // as somebody wants them
  CuptiActivity second(library_);
  ASSERT_TRUE(second.start());
  second.close();
  EXPECT_EQ(cupti_.thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
}

// In these versions kernels may have no times then.
TEST_F(CuptiActivityTest, KeepsItsClockFromACuptiThatDoesNotBearIt) {
  CuptiLibrary library = library_;
  for (const auto& [version, takes] : std::vector<std::pair<std::uint32_t, bool>>{
           {20, true}, {24, false}, {28, false}, {130001, false}, {130100, true}, {130200, true}}) {
    library.version = version;
    EXPECT_EQ(library.takes_clock(), takes) << version;
  }
  library.register_timestamp_callback = nullptr;
  EXPECT_FALSE(library.takes_clock());
}

// A client before us has given it one, which cannot be taken back.
TEST_F(CuptiActivityTest, GivesItsClockToACuptiThatHasAnothersAlready) {
  static int given;
  given = 0;
  CuptiLibrary library = library_;
  library.version = 26;
  library.register_timestamp_callback = [](CUpti_TimestampCallbackFunc) {
    ++given;
    return CUPTI_SUCCESS;
  };
  library.get_timestamp = [](std::uint64_t* ns) {
    *ns = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                     std::chrono::nanoseconds(1));
    return CUPTI_SUCCESS;
  };
  {
    CuptiActivity activity(library);
    ASSERT_TRUE(activity.start());
  }
  EXPECT_EQ(given, 0);
  library.get_timestamp = [](std::uint64_t* ticks) {
    *ticks = 123'456'789;
    return CUPTI_SUCCESS;
  };
  {
    CuptiActivity activity(library);
    ASSERT_TRUE(activity.start());
    EXPECT_EQ(given, 1);
  }
  EXPECT_EQ(given, 2);  // and at the end, what CUPTI would tell without it
}

TEST_F(CuptiActivityTest, CountsOnlyWhatWasDroppedSinceItsStart) {
  cupti_.dropped = 7;
  CuptiActivity activity(library_);
  ASSERT_TRUE(activity.start());
  cupti_.dropped = 2;
  test::KeptRecords kept;
  activity.drain(kept, false);
  EXPECT_EQ(activity.health().dropped, 2u);
}

TEST_F(CuptiActivityTest, CountsABufferThatCannotBeReadToItsEnd) {
  CuptiActivity activity(library_);
  ASSERT_TRUE(activity.start());
  const auto fill = [&] {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0;
    std::size_t most = 0;
    cupti_.request(&buffer, &bytes, &most);
    ASSERT_NE(buffer, nullptr);
    cupti_.complete(nullptr, 0, buffer, bytes, 8);
  };
  test::KeptRecords kept;
  fill();
  activity.drain(kept, false);
  EXPECT_EQ(activity.health().buffers_lost, 0u);
  cupti_.end_of_buffer = CUPTI_ERROR_INVALID_KIND;
  fill();
  activity.drain(kept, false);
  EXPECT_EQ(activity.health().buffers_lost, 1u);
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
