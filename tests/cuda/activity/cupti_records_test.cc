// Records in the layouts of CUPTI's versions, built by hand.
#include "activity/cupti_records.h"

#include <cupti_activity_deprecated.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "cuda/activity/kept_records.h"
#include "record/definitions.h"

namespace layertrace::cuda {
namespace {

constexpr std::uint32_t kCuda128 = 26;  // CUPTI of CUDA 12.8
constexpr std::uint32_t kCuda130 = 130000;
constexpr std::uint32_t kCuda132 = 130200;

template <typename T>
const CUpti_Activity& as_activity(const T& record) {
  return reinterpret_cast<const CUpti_Activity&>(record);
}

template <typename T>
T made_record(CUpti_ActivityKind kind, std::uint64_t start, std::uint64_t end) {
  T record{};
  record.kind = kind;
  record.start = start;
  record.end = end;
  record.correlationId = 42;
  record.deviceId = 1;
  record.contextId = 2;
  record.streamId = 7;
  record.graphNodeId = 99;
  return record;
}

template <typename T>
T made_kernel(const char* name) {
  auto record = made_record<T>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 100, 150);
  record.name = name;
  record.registersPerThread = 40;
  record.staticSharedMemory = 1'000;
  record.dynamicSharedMemory = 24;
  record.gridX = 3;
  record.gridY = 4;
  record.gridZ = 5;
  record.blockX = 32;
  record.blockY = 2;
  record.blockZ = 1;
  return record;
}

std::string text_of(NameId name) { return NameTable::instance().text(name); }

CuptiLibrary library_of(std::uint32_t version) {
  CuptiLibrary library;
  library.version = version;
  library.callback_name = [](CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
    *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cudaMemcpyAsync_v3020" : "cuLaunchKernel";
    return id == 5 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
  };
  return library;
}

// With one version of CUPTI, whose clock is ours.
struct Reading {
  explicit Reading(std::uint32_t version) : library(library_of(version)) {}

  template <typename T>
  void read(const T& record) {
    reader.read(as_activity(record), kept);
  }
  // The one that was handed over.
  DeviceActivity only() const {
    EXPECT_EQ(kept.activities.size(), 1u);
    return kept.activities.empty() ? DeviceActivity{} : kept.activities[0];
  }

  const CuptiLibrary library;
  const DeviceClock clock;
  GpuHealth health;
  test::KeptRecords kept;
  RecordReader reader{library, clock, health};
};

template <typename T>
void expect_kernel(std::uint32_t version) {
  Reading reading(version);
  reading.read(made_kernel<T>("_ZN2at6native4copyEPfi"));
  const DeviceActivity kernel = reading.only();
  EXPECT_EQ(kernel.kind, DeviceKind::kKernel);
  EXPECT_EQ(text_of(kernel.name), "at::native::copy(float*, int)");
  EXPECT_EQ(kernel.start_ticks, 100u);
  EXPECT_EQ(kernel.end_ticks, 150u);
  EXPECT_EQ(kernel.correlation, 42u);
  EXPECT_EQ(kernel.device, 1u);
  EXPECT_EQ(kernel.context, 2u);
  EXPECT_EQ(kernel.stream, 7u);
  EXPECT_EQ(kernel.graph_node, 99u);
  EXPECT_EQ(kernel.registers, 40u);
  EXPECT_EQ(kernel.shared_bytes, 1'024u);
  EXPECT_EQ(kernel.grid, (std::array<std::uint32_t, 3>{3, 4, 5}));
  EXPECT_EQ(kernel.block, (std::array<std::uint32_t, 3>{32, 2, 1}));
  EXPECT_EQ(reading.health, GpuHealth{});
}

TEST(CuptiRecords, ReadsKernelsInEachLayout) {
  expect_kernel<CUpti_ActivityKernel9>(kCuda128);
  expect_kernel<CUpti_ActivityKernel10>(kCuda130);
  expect_kernel<CUpti_ActivityKernel11>(kCuda132);
}

TEST(CuptiRecords, NamesKernelsAsPeopleWriteThem) {
  Reading reading(kCuda132);
  reading.read(made_kernel<CUpti_ActivityKernel11>("plain_c_kernel"));
  reading.read(made_kernel<CUpti_ActivityKernel11>(nullptr));
  // What was unloaded may have left its address to another kernel.
  char text[] = "_Z5firstv";
  reading.read(made_kernel<CUpti_ActivityKernel11>(text));
  reading.read(made_kernel<CUpti_ActivityKernel11>(text));
  std::copy_n("_Z5otherv", sizeof text, text);
  reading.read(made_kernel<CUpti_ActivityKernel11>(text));
  ASSERT_EQ(reading.kept.activities.size(), 5u);
  const char* const expected[] = {"plain_c_kernel", "unknown kernel", "first()", "first()",
                                  "other()"};
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(text_of(reading.kept.activities[i].name), expected[i]);
}

template <typename T>
void expect_copy(std::uint32_t version, CUpti_ActivityMemcpyKind kind, const char* name) {
  Reading reading(version);
  auto record = made_record<T>(CUPTI_ACTIVITY_KIND_MEMCPY, 10, 30);
  record.copyKind = static_cast<std::uint8_t>(kind);
  record.bytes = 4'096;
  reading.read(record);
  const DeviceActivity copy = reading.only();
  EXPECT_EQ(copy.kind, DeviceKind::kCopy);
  EXPECT_EQ(text_of(copy.name), name);
  EXPECT_EQ(copy.bytes, 4'096u);
  EXPECT_EQ(copy.start_ticks, 10u);
  EXPECT_EQ(copy.end_ticks, 30u);
  EXPECT_EQ(copy.correlation, 42u);
  EXPECT_EQ(copy.device, 1u);
  EXPECT_EQ(copy.context, 2u);
  EXPECT_EQ(copy.stream, 7u);
  EXPECT_EQ(copy.graph_node, 99u);
}

TEST(CuptiRecords, ReadsCopiesInEachLayout) {
  expect_copy<CUpti_ActivityMemcpy5>(kCuda128, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                                     "copy host to device");
  expect_copy<CUpti_ActivityMemcpy6>(kCuda130, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,
                                     "copy device to host");
  expect_copy<CUpti_ActivityMemcpy6>(kCuda132, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, "copy on device");
  expect_copy<CUpti_ActivityMemcpy6>(kCuda132, CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, "copy");
}

TEST(CuptiRecords, ReadsCopiesBetweenDevices) {
  for (const std::uint32_t version : {kCuda128, kCuda132}) {
    Reading reading(version);
    auto record = made_record<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, 10, 30);
    record.bytes = 512;
    reading.read(record);
    EXPECT_EQ(reading.only().kind, DeviceKind::kCopy);
    EXPECT_EQ(text_of(reading.only().name), "copy device to device");
    EXPECT_EQ(reading.only().bytes, 512u);
  }
}

TEST(CuptiRecords, ReadsSets) {
  for (const std::uint32_t version : {kCuda128, kCuda132}) {
    Reading reading(version);
    auto record = made_record<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 10, 10);
    record.bytes = 64;
    reading.read(record);
    EXPECT_EQ(reading.only().kind, DeviceKind::kSet);
    EXPECT_EQ(text_of(reading.only().name), "set");
    EXPECT_EQ(reading.only().bytes, 64u);
    EXPECT_EQ(reading.only().end_ticks, 10u);  // as short as can be
  }
}

TEST(CuptiRecords, ReadsCallsOnTheHost) {
  Reading reading(kCuda132);
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.cbid = 5;
  call.start = 10;
  call.end = 12;
  call.threadId = 77;
  call.correlationId = 42;
  reading.read(call);
  call.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  reading.read(call);
  ASSERT_EQ(reading.kept.launches.size(), 2u);
  const DeviceLaunch& first = reading.kept.launches[0];
  EXPECT_EQ(text_of(first.name), "cudaMemcpyAsync");
  EXPECT_EQ(first.kind, CallKind::kCopy);
  EXPECT_EQ(first.start_ticks, 10u);
  EXPECT_EQ(first.end_ticks, 12u);
  EXPECT_EQ(first.tid, 77u);
  EXPECT_EQ(first.correlation, 42u);
  EXPECT_EQ(text_of(reading.kept.launches[1].name), "cuLaunchKernel");
  EXPECT_TRUE(reading.kept.activities.empty());
}

// Kineto pushes ids, too; they are none of ours.
TEST(CuptiRecords, TakesTheIdsOfOurKindOnly) {
  Reading reading(kCuda132);
  CUpti_ActivityExternalCorrelation tag{};
  tag.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  tag.externalId = 0x0123'4567'89ab'cdef;
  tag.correlationId = 42;
  for (const auto kind :
       {CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
        CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN, kTagKind}) {
    tag.externalKind = kind;
    reading.read(tag);
  }
  ASSERT_EQ(reading.kept.tags.size(), 1u);
  EXPECT_EQ(reading.kept.tags[0].scope, 0x0123'4567'89ab'cdefu);
  EXPECT_EQ(reading.kept.tags[0].correlation, 42u);
}

TEST(CuptiRecords, CountsWhatItCannotUse) {
  Reading reading(kCuda132);
  const auto set = [](std::uint64_t start, std::uint64_t end) {
    return made_record<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, start, end);
  };
  reading.read(set(0, 10));
  reading.read(set(10, 0));
  reading.read(set(0, 0));
  reading.read(set(10, 9));
  auto kernel = made_kernel<CUpti_ActivityKernel11>("k");
  kernel.start = 0;
  reading.read(kernel);
  kernel.start = 200;
  reading.read(kernel);
  CUpti_Activity other{};
  other.kind = CUPTI_ACTIVITY_KIND_MARKER;
  reading.read(other);
  EXPECT_TRUE(reading.kept.activities.empty());
  EXPECT_EQ(reading.health.untimed, 4u);
  EXPECT_EQ(reading.health.reversed, 2u);
  EXPECT_EQ(reading.health.unknown, 1u);
}

TEST(CuptiRecords, TurnsTheDevicesTimesIntoOurs) {
  const CuptiLibrary library = library_of(kCuda132);
  DeviceClock clock(0.5);
  clock.add_reading(100, 1'000);
  GpuHealth health;
  test::KeptRecords kept;
  RecordReader reader(library, clock, health);
  reader.read(as_activity(made_kernel<CUpti_ActivityKernel11>("k")), kept);
  ASSERT_EQ(kept.activities.size(), 1u);
  EXPECT_EQ(kept.activities[0].start_ticks, 1'000u);
  EXPECT_EQ(kept.activities[0].end_ticks, 1'100u);
}

}  // namespace
}  // namespace layertrace::cuda
