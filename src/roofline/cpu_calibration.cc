#include "roofline/cpu_calibration.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace layertrace::roofline {
namespace {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;

constexpr Duration kFmaRun = std::chrono::milliseconds(2);
constexpr std::size_t kRuns = 3;  // of each measurement; the fastest counts
// Of all threads together, but each has some to read. That is less than caches hold, but it is not
// in them: 16 MiB flushed read as fast as 256 MiB (a Sapphire Rapids, 15.6 GB/s), and fresh pages
// are dear in a virtual machine.
constexpr std::size_t kFlushedBytes = std::size_t{16} << 20;
constexpr std::size_t kLeastBytes = std::size_t{1} << 20;
constexpr std::size_t kLineBytes = 64;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// A result that is kept has to be computed.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

// Multiply-adds. Each kernel has twelve numbers (or vectors of them) in registers, enough for two
// units of four cycles' latency, and takes each to x · 0.5 + 0.5 for kRounds rounds: it stays near
// 1, where no operand is slow.

constexpr int kNumbers = 12;
constexpr int kRounds = 2000;

struct FmaKernel {
  void (*run)() = nullptr;
  double flops = 0;  // of one run
};

struct FmaKernels {
  FmaKernel fp32;
  FmaKernel fp64;
  std::string_view instructions;
};

constexpr double flops_of(int lanes) { return 2.0 * kNumbers * kRounds * lanes; }

// A macro, since a template cannot be told for which instructions to compile an instance.
#define LAYERTRACE_FMA_KERNEL(name, attribute, Vector, broadcast, fma)                \
  attribute void name() {                                                             \
    const auto half = broadcast(0.5);                                                 \
    Vector numbers[kNumbers];                                                         \
    for (int i = 0; i < kNumbers; ++i) numbers[i] = broadcast(static_cast<float>(i)); \
    for (int round = 0; round < kRounds; ++round) {                                   \
      _Pragma("GCC unroll 12") for (auto& x : numbers) x = fma(x, half, half);        \
    }                                                                                 \
    keep(numbers);                                                                    \
  }

#if defined(__x86_64__)
#define LAYERTRACE_AVX512 __attribute__((target("avx512f")))
#define LAYERTRACE_AVX2 __attribute__((target("avx2,fma")))
LAYERTRACE_FMA_KERNEL(fma_avx512_fp32, LAYERTRACE_AVX512, __m512, _mm512_set1_ps, _mm512_fmadd_ps)
LAYERTRACE_FMA_KERNEL(fma_avx512_fp64, LAYERTRACE_AVX512, __m512d, _mm512_set1_pd, _mm512_fmadd_pd)
LAYERTRACE_FMA_KERNEL(fma_avx2_fp32, LAYERTRACE_AVX2, __m256, _mm256_set1_ps, _mm256_fmadd_ps)
LAYERTRACE_FMA_KERNEL(fma_avx2_fp64, LAYERTRACE_AVX2, __m256d, _mm256_set1_pd, _mm256_fmadd_pd)
#elif defined(__aarch64__)
float32x4_t fma_neon(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(c, a, b); }
float64x2_t fma_neon(float64x2_t a, float64x2_t b, float64x2_t c) { return vfmaq_f64(c, a, b); }
LAYERTRACE_FMA_KERNEL(fma_neon_fp32, , float32x4_t, vdupq_n_f32, fma_neon)
LAYERTRACE_FMA_KERNEL(fma_neon_fp64, , float64x2_t, vdupq_n_f64, fma_neon)
#endif

template <typename T>
T multiply_add(T a, T b, T c) {
  return a * b + c;
}
LAYERTRACE_FMA_KERNEL(fma_scalar_fp32, , float, static_cast<float>, multiply_add<float>)
LAYERTRACE_FMA_KERNEL(fma_scalar_fp64, , double, static_cast<double>, multiply_add<double>)

FmaKernels choose_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return {{fma_avx512_fp32, flops_of(16)}, {fma_avx512_fp64, flops_of(8)}, "AVX-512"};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {{fma_avx2_fp32, flops_of(8)}, {fma_avx2_fp64, flops_of(4)}, "AVX2"};
  }
#elif defined(__aarch64__)
  return {{fma_neon_fp32, flops_of(4)}, {fma_neon_fp64, flops_of(2)}, "NEON"};
#endif
  return {{fma_scalar_fp32, flops_of(1)}, {fma_scalar_fp64, flops_of(1)}, "scalar"};
}

// Memory.

// Out of the caches, so that the next read comes from memory. False where a program cannot do that.
#if defined(__x86_64__)
// The older instruction waits for itself: forty times slower on a Sapphire Rapids.
__attribute__((target("clflushopt"))) void flush_at_once(const std::byte* bytes, std::size_t size) {
  for (std::size_t i = 0; i < size; i += kLineBytes)
    _mm_clflushopt(const_cast<std::byte*>(bytes + i));
}

bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

bool flush(const std::byte* bytes, std::size_t size) {
  if (has_clflushopt()) {
    flush_at_once(bytes, size);
  } else {
    for (std::size_t i = 0; i < size; i += kLineBytes) _mm_clflush(bytes + i);
  }
  _mm_mfence();
  return true;
}
#elif defined(__aarch64__)
bool flush(const std::byte* bytes, std::size_t size) {
  for (std::size_t i = 0; i < size; i += kLineBytes) {
    asm volatile("dc civac, %0" : : "r"(bytes + i) : "memory");
  }
  asm volatile("dsb sy" : : : "memory");
  return true;
}
#else
bool flush(const std::byte* /*bytes*/, std::size_t /*size*/) { return false; }
#endif

// One word of each line is enough: memory hands over whole lines.
std::uint64_t read_lines(const std::byte* bytes, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size; i += kLineBytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, sizeof(word));
    sum += word;
  }
  return sum;
}

std::size_t largest_cache_bytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return static_cast<std::size_t>(bytes);
#endif
  return std::size_t{32} << 20;
}

// Fresh pages, in large ones where the system has them.
class Buffer {
 public:
  explicit Buffer(std::size_t size)
      : size_(size),
        memory_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    madvise(memory_, size_, MADV_HUGEPAGE);
  }
  Buffer(const Buffer&) = delete;  // each thread reads its own part
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { munmap(memory_, size_); }

  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  std::size_t size_;
  void* memory_;
};

// All threads.

// What one thread did, and when.
struct Run {
  double amount = 0;
  Clock::time_point begin;
  Clock::time_point end;
};
using Runs = std::array<Run, kRuns>;

// What all threads did, from the first one's begin to the last one's end. More threads than cores
// take turns, and so do not count twice.
double fastest(const std::vector<Runs>& threads) {
  double best = 0;
  for (std::size_t i = 0; i < kRuns; ++i) {
    Run all{0, threads.front()[i].begin, threads.front()[i].end};
    for (const Runs& runs : threads) {
      all.amount += runs[i].amount;
      all.begin = std::min(all.begin, runs[i].begin);
      all.end = std::max(all.end, runs[i].end);
    }
    best = std::max(best, all.amount / seconds(all.end - all.begin));
  }
  return best;
}

class Bench {
 public:
  Bench(int threads, std::size_t part_bytes)
      : threads_(static_cast<std::size_t>(threads)),
        part_bytes_(part_bytes),
        buffer_(threads_ * part_bytes),
        kernels_(choose_kernels()),
        together_(threads),
        fp32_(threads_),
        fp64_(threads_),
        reads_(threads_) {}

  void run() {
    std::vector<std::thread> others;
    others.reserve(threads_);
    try {
      for (std::size_t i = 1; i < threads_; ++i) others.emplace_back([this, i] { work(i); });
    } catch (const std::exception&) {
      for (std::size_t i = others.size() + 1; i < threads_; ++i) together_.arrive_and_drop();
      failed_ = true;
    }
    work(0);
    for (std::thread& thread : others) thread.join();
  }

  bool failed() const { return failed_; }
  double fp32() const { return fastest(fp32_); }
  double fp64() const { return fastest(fp64_); }
  double bandwidth() const { return fastest(reads_); }
  std::string_view instructions() const { return kernels_.instructions; }

 private:
  void work(std::size_t thread) {
    std::byte* part = buffer_.data() + thread * part_bytes_;
    std::memset(part, 1, part_bytes_);  // it has pages from now on, of this thread's node
    fp32_[thread] = run_fma(kernels_.fp32);
    fp64_[thread] = run_fma(kernels_.fp64);
    reads_[thread] = run_reads(part);
  }

  Runs run_fma(const FmaKernel& kernel) {
    Runs runs;
    for (Run& run : runs) {
      together_.arrive_and_wait();
      run.begin = Clock::now();
      do {
        kernel.run();
        run.amount += kernel.flops;
        run.end = Clock::now();
      } while (run.end - run.begin < kFmaRun);
    }
    return runs;
  }

  Runs run_reads(const std::byte* part) {
    Runs runs;
    for (Run& run : runs) {
      flush(part, part_bytes_);
      together_.arrive_and_wait();
      run.begin = Clock::now();
      keep(read_lines(part, part_bytes_));
      run.end = Clock::now();
      run.amount = static_cast<double>(part_bytes_);
    }
    return runs;
  }

  std::size_t threads_;
  std::size_t part_bytes_;
  Buffer buffer_;
  FmaKernels kernels_;
  std::barrier<> together_;
  std::vector<Runs> fp32_;  // by thread
  std::vector<Runs> fp64_;
  std::vector<Runs> reads_;
  bool failed_ = false;
};

std::size_t part_bytes(std::size_t threads) {
  std::byte line[kLineBytes]{};
  const std::size_t all = flush(line, 1) ? kFlushedBytes : 2 * largest_cache_bytes();
  return std::max(kLeastBytes, all / threads / kLineBytes * kLineBytes);
}

Error cannot_measure(std::string cause) {
  return {"cannot measure what the CPU can do", std::move(cause), "Try with fewer threads"};
}

}  // namespace

Result<CpuCalibration> calibrate_cpu(int threads) {
  const auto start = Clock::now();
  CpuCalibration result;
  result.threads = std::max(threads, 1);
  const auto count = static_cast<std::size_t>(result.threads);
  try {
    const std::size_t bytes = part_bytes(count);
    Bench bench(result.threads, bytes);
    bench.run();
    if (bench.failed())
      return cannot_measure(fmt::format("{} threads could not be started", threads));
    result.peaks.of(Dtype::kFp32).vector = bench.fp32();
    result.peaks.of(Dtype::kFp64).vector = bench.fp64();
    result.peaks.bytes_per_s = bench.bandwidth();
    result.instructions = bench.instructions();
    result.bytes_read = bytes * count;
  } catch (const std::bad_alloc&) {
    return cannot_measure(fmt::format("there is no memory for {} threads to read", threads));
  }
  result.peaks.name = fmt::format("CPU, {} thread{}", count, count == 1 ? "" : "s");
  result.peaks.origin = Origin::kMeasured;
  result.peaks.source =
      fmt::format("measured: multiply-adds with {}, reading of memory", result.instructions);
  result.took_ms = seconds(Clock::now() - start) * 1e3;
  return result;
}

}  // namespace layertrace::roofline
