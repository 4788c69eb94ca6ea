// From CUPTI's buffers to attributed kernels: what the writer's thread does for each, on made-up
// records. Each kernel comes with the record of its launch and with that of the launch's scope.
#include <benchmark/benchmark.h>
#include <cupti.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "activity/cupti_records.h"
#include "activity/device_clock.h"
#include "attribute/device_resolver.h"
#include "attribute/fold.h"
#include "attribute/resolver.h"
#include "made_up_run.h"
#include "record/device_record.h"

namespace layertrace {
namespace {

constexpr int kSteps = 40;
constexpr std::uint32_t kSession = 1;
constexpr std::uint32_t kVersion = 130202;
constexpr std::uint32_t kTid = 1000;

// Names as PyTorch's kernels have them: long.
constexpr const char* kKernels[] = {
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15FillFunctorIfEESt5arrayIPcLm1EEEEviT0_"
    "T1_",
    "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_15CUDAFunctor_"
    "addIfEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_",
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute",
    "_ZN2at6native43_GLOBAL__N__layer_norm_kernel_vectorized_layer_norm_kernelIffEEviT0_PKT_S5_S5_",
};

cuda::CuptiLibrary library() {
  cuda::CuptiLibrary cupti;
  cupti.version = kVersion;
  cupti.callback_name = [](CUpti_CallbackDomain, std::uint32_t, const char** name) {
    *name = "cudaLaunchKernel_v7000";
    return CUPTI_SUCCESS;
  };
  return cupti;
}

// A kernel for each scope and node that begins.
class Buffer {
 public:
  explicit Buffer(const std::vector<Record>& records) {
    std::uint64_t number = 0;
    for (const Record& record : records) {
      if (!has_number(record.kind)) continue;
      ++number;
      if (is_begin(record.kind)) add_kernel(record.ticks, frame_id(kSession, 0, number));
    }
  }

  std::uint64_t kernels() const { return kernels_; }

  template <typename Visit>
  void each(const Visit& visit) const {
    for (const std::size_t offset : offsets_)
      visit(*reinterpret_cast<const CUpti_Activity*>(bytes_.data() + offset));
  }

 private:
  template <typename T>
  void append(const T& record) {
    offsets_.push_back(bytes_.size());
    const auto* from = reinterpret_cast<const std::uint8_t*>(&record);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
  }

  void add_kernel(std::uint64_t ticks, std::uint64_t frame) {
    const auto correlation = static_cast<std::uint32_t>(++kernels_);
    CUpti_ActivityExternalCorrelation tag{};
    tag.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    tag.externalKind = cuda::kTagKind;
    tag.externalId = frame;
    tag.correlationId = correlation;
    append(tag);
    CUpti_ActivityAPI call{};
    call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    call.cbid = 211;
    call.start = ticks + 1;
    call.end = ticks + 2;
    call.correlationId = correlation;
    call.threadId = kTid;
    append(call);
    CUpti_ActivityKernel11 kernel{};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.start = ticks + 10;
    kernel.end = ticks + 20;
    kernel.correlationId = correlation;
    kernel.gridX = kernel.gridY = kernel.gridZ = 1;
    kernel.blockX = 128;
    kernel.blockY = kernel.blockZ = 1;
    kernel.registersPerThread = 32;
    kernel.name = kKernels[kernels_ % std::size(kKernels)];
    append(kernel);
  }

  std::vector<std::uint8_t> bytes_;
  std::vector<std::size_t> offsets_;
  std::uint64_t kernels_ = 0;
};

class NoSink final : public SpanSink {
 public:
  void open_lane(Lane /*lane*/, std::uint64_t /*tid*/, const std::string& /*name*/) override {}
  void begin(Lane /*lane*/, const SpanBegin& /*span*/) override {}
  void end(Lane /*lane*/, Track /*track*/, std::uint64_t /*ns*/, EndedBy /*by*/) override {}
  void window(Lane /*lane*/, std::uint64_t /*ns*/, bool /*on*/, std::uint64_t /*step*/) override {}
  void step(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*index*/) override {}
  void gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) override {}
  void device(const DeviceSpan& span) override {
    benchmark::DoNotOptimize(&span);
    attributed += span.layer != kNoLayer ? 1 : 0;
  }
  std::uint64_t attributed = 0;
};

// The host's records are resolved beforehand: this is about the device's.
template <typename Sink>
void attribute(benchmark::State& state, Sink& sink, const Dictionary& dictionary) {
  static const MadeUpRun kRun;
  static const std::vector<Record> kRecords = kRun.records(kSteps);
  static const Buffer kBuffer(kRecords);
  const cuda::CuptiLibrary cupti = library();
  cuda::DeviceClock clock;
  GpuHealth health;
  cuda::RecordReader reader(cupti, clock, health);
  Resolver resolver(dictionary, sink, TickScale{}, 1 << 17);
  resolver.remember_places(1 << 20);
  resolver.open_lane(0, 0, kTid, "bench");
  resolver.index(0, kRecords);
  resolver.resolve(0, kRecords);
  DeviceResolver devices(dictionary, resolver, sink, TickScale{}, kSession);
  for (auto _ : state) {
    kBuffer.each([&](const CUpti_Activity& record) { reader.read(record, devices); });
    devices.settle(~std::uint64_t{0});
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(kBuffer.kernels()) * state.iterations());
}

// The dictionary with the names that the records are read into.
Dictionary dictionary_with_names() {
  static const MadeUpRun kRun;
  Dictionary dictionary = kRun.dictionary();
  dictionary.names.resize(1 << 12, "kernel");
  return dictionary;
}

void parse_and_attribute(benchmark::State& state) {
  const Dictionary dictionary = dictionary_with_names();
  NoSink sink;
  attribute(state, sink, dictionary);
  if (sink.attributed == 0) state.SkipWithError("nothing was attributed");
}
BENCHMARK(parse_and_attribute);

void parse_attribute_and_fold(benchmark::State& state) {
  const Dictionary dictionary = dictionary_with_names();
  Fold fold(dictionary);
  fold.use_device("bench");
  attribute(state, fold, dictionary);
}
BENCHMARK(parse_attribute_and_fold);

}  // namespace
}  // namespace layertrace
