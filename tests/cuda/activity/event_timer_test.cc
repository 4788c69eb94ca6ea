// CUDA events around layers, over a fake device with a clock of its own.
#include "activity/event_timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cuda/activity/kept_records.h"

namespace layertrace::cuda {
namespace {

struct FakeEvent {
  double at_ns = 0;
  bool ready = true;
};

// What the runtime's functions, which are plain pointers, work on. One at a time.
struct FakeCuda {
  std::mutex mutex;
  double now_ns = 0;
  bool done = true;  // it has come to all that is recorded
  std::map<cudaEvent_t, std::unique_ptr<FakeEvent>> events;
  std::size_t made = 0;
  std::size_t bad_calls = 0;  // with an event that is not there
  std::set<cudaStream_t> capturing;
  std::set<cudaStream_t> touched;
  cudaError_t create_result = cudaSuccess;
  cudaError_t record_result = cudaSuccess;
  cudaError_t elapsed_result = cudaSuccess;
  cudaError_t last_error = cudaSuccess;

  static FakeCuda* current;

  cudaError_t fail(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
  }
  FakeEvent* find(cudaEvent_t event) {
    const auto known = events.find(event);
    if (known != events.end()) return known->second.get();
    ++bad_calls;
    return nullptr;
  }
};
FakeCuda* FakeCuda::current = nullptr;

thread_local CurrentStream current_stream{0, nullptr};
thread_local int gone_to = -1;  // another device than that of the stream

CudaRuntime fake_runtime() {
  CudaRuntime runtime;
  runtime.get_device = [](int* device) {
    *device = gone_to >= 0 ? gone_to : current_stream.device;
    return cudaSuccess;
  };
  runtime.set_device = [](int) { return cudaSuccess; };
  runtime.get_last_error = [] {
    const std::lock_guard lock(FakeCuda::current->mutex);
    return std::exchange(FakeCuda::current->last_error, cudaSuccess);
  };
  runtime.create_event = [](cudaEvent_t* event, unsigned) {
    FakeCuda& cuda = *FakeCuda::current;
    const std::lock_guard lock(cuda.mutex);
    if (cuda.create_result != cudaSuccess) return cuda.fail(cuda.create_result);
    auto fresh = std::make_unique<FakeEvent>();
    *event = reinterpret_cast<cudaEvent_t>(fresh.get());
    cuda.events.emplace(*event, std::move(fresh));
    ++cuda.made;
    return cudaSuccess;
  };
  runtime.destroy_event = [](cudaEvent_t event) {
    FakeCuda& cuda = *FakeCuda::current;
    const std::lock_guard lock(cuda.mutex);
    if (cuda.find(event) == nullptr) return cuda.fail(cudaErrorInvalidResourceHandle);
    cuda.events.erase(event);
    return cudaSuccess;
  };
  runtime.record_event = [](cudaEvent_t event, cudaStream_t stream) {
    FakeCuda& cuda = *FakeCuda::current;
    const std::lock_guard lock(cuda.mutex);
    cuda.touched.insert(stream);
    FakeEvent* known = cuda.find(event);
    if (known == nullptr) return cuda.fail(cudaErrorInvalidResourceHandle);
    if (cuda.record_result != cudaSuccess) return cuda.fail(cuda.record_result);
    *known = {cuda.now_ns, cuda.done};
    return cudaSuccess;
  };
  runtime.query_event = [](cudaEvent_t event) {
    FakeCuda& cuda = *FakeCuda::current;
    const std::lock_guard lock(cuda.mutex);
    const FakeEvent* known = cuda.find(event);
    if (known == nullptr) return cuda.fail(cudaErrorInvalidResourceHandle);
    return known->ready ? cudaSuccess : cuda.fail(cudaErrorNotReady);
  };
  runtime.elapsed_ms = [](float* ms, cudaEvent_t from, cudaEvent_t to) {
    FakeCuda& cuda = *FakeCuda::current;
    const std::lock_guard lock(cuda.mutex);
    const FakeEvent* first = cuda.find(from);
    const FakeEvent* second = cuda.find(to);
    if (first == nullptr || second == nullptr) return cuda.fail(cudaErrorInvalidResourceHandle);
    if (cuda.elapsed_result != cudaSuccess) return cuda.fail(cuda.elapsed_result);
    *ms = static_cast<float>((second->at_ns - first->at_ns) * 1e-6);
    return cudaSuccess;
  };
  runtime.is_capturing = [](cudaStream_t stream, cudaStreamCaptureStatus* status) {
    FakeCuda& cuda = *FakeCuda::current;
    const std::lock_guard lock(cuda.mutex);
    *status = cuda.capturing.contains(stream) ? cudaStreamCaptureStatusActive
                                              : cudaStreamCaptureStatusNone;
    return cudaSuccess;
  };
  return runtime;
}

cudaStream_t stream_at(std::uintptr_t number) { return reinterpret_cast<cudaStream_t>(number); }

class EventTimerTest : public ::testing::Test {
 protected:
  static constexpr double kTicksPerNs = 2;

  FakeCuda cuda_;
  const CudaRuntime runtime_ = fake_runtime();
  EventTimer timer_{runtime_, []() noexcept { return current_stream; }, 1 / kTicksPerNs};
  test::KeptRecords kept_;

  void SetUp() override {
    FakeCuda::current = &cuda_;
    current_stream = {0, nullptr};
    gone_to = -1;
  }
  void TearDown() override {
    timer_.close();
    EXPECT_TRUE(cuda_.events.empty());
    EXPECT_EQ(cuda_.bad_calls, 0u);
    EXPECT_EQ(cuda_.last_error, cudaSuccess);  // the program finds no error of ours
  }

  void begin(std::uint32_t layer, std::uint64_t frame = 0) {
    timer_.begin_layer(LayerId{layer}, Phase::kForward, frame);
  }
  void one_pair(std::uint32_t layer, double ns) {
    begin(layer);
    cuda_.now_ns += ns;
    timer_.end();
  }
  void drain(bool all = false) { timer_.drain(kept_, all); }
  GpuHealth health() const {
    GpuHealth health;
    timer_.add_to(health);
    return health;
  }
  // The device comes to all that was recorded.
  void come_to_all() {
    for (auto& [event, known] : cuda_.events) known->ready = true;
  }
};

TEST_F(EventTimerTest, HandsOverPairsInTheirOrder) {
  for (std::uint32_t layer = 0; layer < 5; ++layer) one_pair(layer, 1'000 * (layer + 1));
  drain();
  ASSERT_EQ(kept_.pairs.size(), 5u);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(kept_.pairs[i].layer, LayerId{i});
    EXPECT_NEAR(static_cast<double>(kept_.pairs[i].end_ticks - kept_.pairs[i].start_ticks),
                kTicksPerNs * 1'000 * (i + 1), 2);
  }
  drain();
  EXPECT_EQ(kept_.pairs.size(), 5u);
}

// What a thread keeps goes in the opposite order to that in which it came: of what is still open,
// somebody older may tell the end when the timer's own is gone.
TEST_F(EventTimerTest, BearsAnEndThatComesWhenTheThreadIsOver) {
  struct AtTheEnd {
    EventTimer* timer = nullptr;
    ~AtTheEnd() {
      if (timer == nullptr) return;
      timer->end();
      timer->begin_layer(LayerId{1}, Phase::kForward, 0);
      timer->begin_region(NameId{1}, Phase::kData);
    }
  };
  std::thread([this] {
    thread_local AtTheEnd older;
    older.timer = &timer_;
    timer_.begin_layer(LayerId{1}, Phase::kForward, 0);
  }).join();
  timer_.drain(kept_, true);
  EXPECT_TRUE(kept_.pairs.empty());
  EXPECT_EQ(cuda_.events.size(), 1u);  // of which nobody knows any more
  cuda_.events.clear();
}

TEST_F(EventTimerTest, SaysWhatAPairIsOf) {
  current_stream = {3, stream_at(0x70)};
  timer_.name_streams([](cudaStream_t stream) -> std::optional<std::uint32_t> {
    return stream == stream_at(0x70) ? std::optional<std::uint32_t>(13) : std::nullopt;
  });
  begin(7, 1'234);
  timer_.end();
  drain();
  ASSERT_EQ(kept_.pairs.size(), 1u);
  EXPECT_EQ(kept_.pairs[0].frame, 1'234u);
  EXPECT_EQ(kept_.pairs[0].device, 3u);
  EXPECT_EQ(kept_.pairs[0].stream, 13u);
  EXPECT_LE(kept_.pairs[0].host_ticks, clock_ticks());
}

// The record of its frame may be forgotten by the time that the device has come to it.
TEST_F(EventTimerTest, KeepsThePhaseInWhichAPairWasBegun) {
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kRecompute}) {
    timer_.begin_layer(LayerId{1}, phase, 0);
    timer_.end();
  }
  drain();
  ASSERT_EQ(kept_.pairs.size(), 3u);
  EXPECT_EQ(kept_.pairs[0].phase, Phase::kForward);
  EXPECT_EQ(kept_.pairs[1].phase, Phase::kBackward);
  EXPECT_EQ(kept_.pairs[2].phase, Phase::kRecompute);
}

TEST_F(EventTimerTest, CountsThePairsAroundAPairButNoRegions) {
  begin(1);
  timer_.begin_region(NameId{1}, Phase::kData);
  begin(2);
  begin(3);
  timer_.end();
  timer_.end();
  timer_.end();  // the region
  timer_.end();
  drain();
  ASSERT_EQ(kept_.pairs.size(), 3u);
  EXPECT_EQ(kept_.pairs[0].layer, LayerId{3});
  EXPECT_EQ(kept_.pairs[0].depth, 2u);
  EXPECT_EQ(kept_.pairs[1].layer, LayerId{2});
  EXPECT_EQ(kept_.pairs[1].depth, 1u);
  EXPECT_EQ(kept_.pairs[2].layer, LayerId{1});
  EXPECT_EQ(kept_.pairs[2].depth, 0u);
  timer_.end();  // one too many
}

// A device never comes to an event before the host has asked for it.
TEST_F(EventTimerTest, PlacesPairsOnOurClock) {
  one_pair(1, 1'000);
  drain();
  EXPECT_EQ(kept_.pairs.at(0).start_ticks, kept_.pairs[0].host_ticks);
  cuda_.now_ns += 9e8;  // the device is far behind the host's asking
  one_pair(2, 1'000);
  drain();
  EXPECT_NEAR(static_cast<double>(kept_.pairs.at(1).start_ticks - kept_.pairs[0].start_ticks),
              kTicksPerNs * 9.00001e8, kTicksPerNs * 100);
  EXPECT_GT(kept_.pairs[1].start_ticks, kept_.pairs[1].host_ticks);
}

// CUDA tells a distance as a float, which has seven digits.
TEST_F(EventTimerTest, MovesItsReferenceAlong) {
  one_pair(1, 1'000);
  for (int i = 0; i < 100; ++i) {
    cuda_.now_ns += 1.5e9;
    one_pair(2, 1'000);
    drain();
  }
  ASSERT_EQ(kept_.pairs.size(), 101u);
  for (const DeviceEventPair& pair : kept_.pairs) {
    EXPECT_NEAR(static_cast<double>(pair.end_ticks - pair.start_ticks), kTicksPerNs * 1'000, 2);
  }
  // The device's clock runs away here, from the host's, which hardly moves meanwhile. Places follow
  // the host's: they are off by no more than the last two moves of the reference.
  const double all_ns =
      static_cast<double>(kept_.pairs[100].start_ticks - kept_.pairs[0].start_ticks) / kTicksPerNs;
  EXPECT_LT(all_ns, 2.2 * 1.5e9);
  EXPECT_LE(cuda_.made, 4u);  // the old reference goes round, too
}

TEST_F(EventTimerTest, WaitsForWhatIsNotReady) {
  cuda_.done = false;
  one_pair(1, 1'000);
  one_pair(2, 1'000);
  drain();
  EXPECT_TRUE(kept_.pairs.empty());
  EXPECT_EQ(cuda_.last_error, cudaSuccess);
  come_to_all();
  drain();
  ASSERT_EQ(kept_.pairs.size(), 2u);
  EXPECT_EQ(kept_.pairs[0].layer, LayerId{1});
  EXPECT_EQ(kept_.pairs[1].layer, LayerId{2});
  EXPECT_EQ(health().events_missed, 0u);
}

// One stream's not being ready does not hold up another.
TEST_F(EventTimerTest, LooksBehindWhatIsNotReady) {
  cuda_.done = false;
  one_pair(1, 1'000);
  cuda_.done = true;
  current_stream.stream = stream_at(0x70);
  one_pair(2, 1'000);
  drain();
  ASSERT_EQ(kept_.pairs.size(), 1u);
  EXPECT_EQ(kept_.pairs[0].layer, LayerId{2});
  come_to_all();
  drain();
  EXPECT_EQ(kept_.pairs.size(), 2u);
}

TEST_F(EventTimerTest, CountsAtTheEndWhatNeverCame) {
  cuda_.done = false;
  one_pair(1, 1'000);
  drain(/*all=*/true);
  EXPECT_TRUE(kept_.pairs.empty());
  EXPECT_EQ(health().events_missed, 1u);
}

TEST_F(EventTimerTest, CountsWhatCudaRefuses) {
  cuda_.create_result = cudaErrorMemoryAllocation;
  one_pair(1, 1'000);
  EXPECT_EQ(health().events_missed, 1u);
  EXPECT_EQ(cuda_.last_error, cudaSuccess);
  cuda_.create_result = cudaSuccess;

  cuda_.record_result = cudaErrorInvalidResourceHandle;
  one_pair(1, 1'000);
  EXPECT_EQ(health().events_missed, 2u);
  EXPECT_EQ(cuda_.last_error, cudaSuccess);
  cuda_.record_result = cudaSuccess;

  begin(1);
  cuda_.record_result = cudaErrorInvalidResourceHandle;
  timer_.end();
  EXPECT_EQ(health().events_missed, 3u);
  EXPECT_EQ(cuda_.last_error, cudaSuccess);
  cuda_.record_result = cudaSuccess;

  one_pair(1, 1'000);
  cuda_.elapsed_result = cudaErrorUnknown;
  drain();
  EXPECT_EQ(health().events_missed, 4u);
  EXPECT_EQ(cuda_.last_error, cudaSuccess);
  cuda_.elapsed_result = cudaSuccess;

  EXPECT_TRUE(kept_.pairs.empty());
  one_pair(5, 1'000);  // it goes on
  drain();
  ASSERT_EQ(kept_.pairs.size(), 1u);
  EXPECT_EQ(kept_.pairs[0].depth, 0u);
  EXPECT_LE(cuda_.events.size(), 2u);  // the events of what failed were used again
}

// The default stream of another device is another stream: nothing can be compared there.
TEST_F(EventTimerTest, DropsAPairWhoseThreadHasGoneToAnotherDevice) {
  begin(1);
  gone_to = 1;
  timer_.end();
  begin(2);  // current_stream still says device 0
  timer_.end();
  gone_to = -1;
  one_pair(3, 100);
  drain();
  ASSERT_EQ(kept_.pairs.size(), 1u);
  EXPECT_EQ(kept_.pairs[0].layer, LayerId{3});
  EXPECT_EQ(health().events_missed, 2u);
}

TEST_F(EventTimerTest, LeavesAStreamAloneThatIsCaptured) {
  current_stream.stream = stream_at(0x70);
  cuda_.capturing.insert(stream_at(0x70));
  begin(1);
  current_stream.stream = stream_at(0x80);
  begin(2);
  timer_.end();
  timer_.end();
  EXPECT_EQ(cuda_.touched, std::set{stream_at(0x80)});
  EXPECT_EQ(health().events_capturing, 1u);
  EXPECT_EQ(health().events_missed, 0u);
  drain();
  ASSERT_EQ(kept_.pairs.size(), 1u);
  EXPECT_EQ(kept_.pairs[0].depth, 0u);
}

TEST_F(EventTimerTest, DropsAPairWhoseStreamIsCapturedMeanwhile) {
  begin(1);
  cuda_.capturing.insert(nullptr);
  timer_.end();
  EXPECT_EQ(health().events_missed, 1u);
  drain();
  EXPECT_TRUE(kept_.pairs.empty());
}

TEST_F(EventTimerTest, DoesNothingBeforeTheProgramUsesADevice) {
  current_stream.device = -1;
  one_pair(1, 1'000);
  EXPECT_EQ(cuda_.made, 0u);
  EXPECT_EQ(health().events_missed, 0u);
}

TEST_F(EventTimerTest, UsesEventsAgain) {
  for (int i = 0; i < 1'000; ++i) {
    one_pair(1, 1'000);
    drain();
  }
  EXPECT_EQ(kept_.pairs.size(), 1'000u);
  EXPECT_LE(cuda_.made, 4u);
}

TEST_F(EventTimerTest, MakesNoMoreEventsThanItMay) {
  constexpr std::size_t kMost = std::size_t{1} << 15;
  for (std::size_t i = 0; i < kMost; ++i) one_pair(1, 1);  // twice as many as there are events for
  EXPECT_EQ(cuda_.made, kMost);
  EXPECT_EQ(health().events_missed, kMost / 2);
  drain();
  EXPECT_EQ(kept_.pairs.size(), kMost / 2);
  one_pair(1, 1);  // there are free ones again
  EXPECT_EQ(health().events_missed, kMost / 2);
}

TEST_F(EventTimerTest, CountsLayersNestedBeyondAnyDepth) {
  constexpr std::uint32_t kDepth = 300;
  for (std::uint32_t i = 0; i < kDepth; ++i) begin(i);
  for (std::uint32_t i = 0; i < kDepth; ++i) timer_.end();
  drain();
  EXPECT_GT(health().events_missed, 0u);
  EXPECT_EQ(kept_.pairs.size() + health().events_missed, kDepth);
  EXPECT_EQ(kept_.pairs.back().layer, LayerId{0});
}

TEST_F(EventTimerTest, DestroysEveryEventWhenItIsClosed) {
  one_pair(1, 1'000);
  drain();  // a reference, and one that is free
  cuda_.done = false;
  one_pair(2, 1'000);
  drain();             // one that waits for the device
  one_pair(3, 1'000);  // one on its way to the writer
  begin(4);            // one that is open
  timer_.close();
  EXPECT_EQ(cuda_.events.size(), 1u);
  timer_.end();
  EXPECT_TRUE(cuda_.events.empty());
  begin(5);
  timer_.end();
  EXPECT_TRUE(cuda_.events.empty());
}

// What another session left open on the thread is not ended here.
TEST_F(EventTimerTest, KnowsItsOwnPairsOnly) {
  begin(1);
  {
    EventTimer other(runtime_, []() noexcept { return current_stream; }, 1);
    other.end();
    other.begin_region(NameId{1}, Phase::kOther);
    other.end();
    other.close();
  }
  timer_.end();
  drain();
  EXPECT_EQ(kept_.pairs.size(), 1u);
}

TEST_F(EventTimerTest, TakesPairsOfTwoThreadsWhileItIsRead) {
  constexpr std::size_t kEach = 2'000;
  const auto work = [this](std::uint32_t device) {
    current_stream = {static_cast<std::int32_t>(device), nullptr};
    for (std::size_t i = 0; i < kEach; ++i) {
      timer_.begin_layer(LayerId{device}, Phase::kForward, 0);
      timer_.begin_layer(LayerId{10 + device}, Phase::kForward, 0);
      timer_.end();
      timer_.end();
    }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  for (int i = 0; i < 100; ++i) drain();
  first.join();
  second.join();
  drain();
  EXPECT_EQ(kept_.pairs.size() + health().events_missed, 4 * kEach);
  EXPECT_GT(kept_.pairs.size(), 0u);
  for (const DeviceEventPair& pair : kept_.pairs) {
    EXPECT_EQ(index(pair.layer) % 10, pair.device);
    EXPECT_EQ(pair.depth, index(pair.layer) / 10);
  }
}

}  // namespace
}  // namespace layertrace::cuda
