// How long calls of a model take: the times of single calls, what they come to, and tables of them.
// benchmark.h measures them.
//
//   auto timed = layertrace::benchmark(model, images);
//   if (timed) std::cout << layertrace::benchmark_text(*timed);
//
// Every function here but timed_modules(), which reads a file, is pure, and may be called from any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/report.h>
#include <layertrace/result.h>

namespace layertrace {

// Of single times. `stdev_ms` is the sample's (n − 1). Percentiles lie between the two nearest
// times, in proportion, as numpy has them by default; p50 is the median. All 0 where there are
// none.
struct TimeStats {
  std::uint64_t count = 0;
  double mean_ms = 0;
  double stdev_ms = 0;
  double min_ms = 0;
  double p5_ms = 0;
  double p25_ms = 0;
  double median_ms = 0;
  double p75_ms = 0;
  double p90_ms = 0;
  double p95_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
};
LAYERTRACE_API TimeStats time_stats(std::vector<std::uint64_t> ns);

// A module, with its time in each iteration in which it ran, children included.
struct TimedModule {
  std::string path;  // dotted, "" for the root
  std::string type;
  int depth = 0;                               // below the root
  bool is_gpu = false;                         // by the GPU's clock, else by the host's
  double calls = 0;                            // per iteration
  std::vector<std::uint64_t> iterations = {};  // counted from the first that was called
  std::vector<std::uint64_t> ns = {};          // as many
};

// Of a saved run, each recorded step as an iteration: the modules that ran. Of a GPU it is their
// time on their stream by CUDA events, else how long the GPU was busy with them; of what did
// nothing there, the host's time.
LAYERTRACE_API Result<std::vector<TimedModule>> timed_modules(const std::string& path);

// What to bear in mind of modules' times from this recording; a sentence each.
LAYERTRACE_API std::vector<std::string> recording_notes(const Profile& profile, bool uses_gpu);

// Where it was measured.
struct TimingEnvironment {
  std::string device;      // "cpu", "cuda:0"
  std::string gpu;         // its name, where it was used; "" otherwise
  bool simulated = false;  // that is a simulated one: its times say nothing about a real one
  std::uint64_t intra_op_threads = 0;
  std::uint64_t inter_op_threads = 0;
  std::string host_name;
  std::string os;          // "Linux"
  std::string os_release;  // of its kernel
  std::string cpu;
  std::uint64_t cpu_count = 0;
  std::uint64_t memory_bytes = 0;
  std::string torch_version;
  std::string layertrace_version = {};
  std::string python_version = {};  // "" for a program without
  std::string command = {};         // as a shell would take it; secrets read "***"
  std::string commit =
      {};  // of the repository that the program is run in or comes from; "" for none
  std::string run_name = {};  // given by the user; "" for none
  std::string created = {};   // UTC, ISO 8601
};

// Of one model, called again and again.
struct Benchmark {
  std::string model;             // its class
  std::uint64_t iterations = 0;  // calls in each pass
  std::uint64_t drop_first = 0;  // of these left out, at its beginning
  // Of single calls, on the host: without anything inside the model; and in another pass, from
  // which the modules' are, with their scopes.
  std::vector<std::uint64_t> total_ns = {};
  std::vector<std::uint64_t> scoped_ns = {};
  std::vector<TimedModule> modules = {};
  TimingEnvironment environment = {};
  std::vector<std::string> notes = {};  // what to bear in mind; a sentence each
  bool aggregate = true;                // tables have statistics, unless asked for single times
};

// By how much the scopes made the model slower, as a share of its time without them (by the
// medians); nothing where one of the two was not measured.
LAYERTRACE_API std::optional<double> scope_overhead(const Benchmark& benchmark);

enum class TimedRows : std::uint8_t {
  kAll,
  kTotal,    // the model without scopes alone
  kModules,  // with scopes
};

// "all", "total", "modules". An unknown name is an error that lists those.
LAYERTRACE_API Result<TimedRows> parse_timed_rows(std::string_view name);

struct BenchmarkTableOptions {
  TimedRows rows = TimedRows::kAll;
  std::optional<bool> aggregate = {};  // as the benchmark has it, unless given
  TableOptions table = {};             // without by_layer
};

// A row for the model without scopes, and one for each module with them; or one for each iteration
// of these (docs/benchmark.md has the columns). An unknown module or column is an error that lists
// what there is.
LAYERTRACE_API Result<Table> benchmark_table(const Benchmark& benchmark,
                                             const BenchmarkTableOptions& options = {});

struct TimingTextOptions {
  std::string root = {};  // what the root's path reads; "" for its class
  int depth = -1;         // levels below the root; −1 for all
  int width = 0;          // as in TreeOptions
  bool color = false;
  bool ascii = false;
};
// For a terminal: statistics, and how they were measured.
LAYERTRACE_API std::string benchmark_text(const Benchmark& benchmark,
                                          const TimingTextOptions& options = {});

// Of one size of batches.
struct BatchTimes {
  std::uint64_t batch_size = 0;
  std::vector<std::uint64_t> ns = {};  // of single calls, without any scope
};

// Of one model, with batches of several sizes.
struct Throughput {
  std::string model;
  std::uint64_t iterations = 0;
  std::uint64_t drop_first = 0;
  std::vector<BatchTimes> batches = {};
  TimingEnvironment environment = {};
  std::uint64_t out_of_memory_at = 0;  // the size for which memory did not suffice; 0 for none
};

// A row for each size: statistics, the time of one sample, and samples per second.
LAYERTRACE_API Table throughput_table(const Throughput& throughput);
LAYERTRACE_API std::string throughput_text(const Throughput& throughput,
                                           const TimingTextOptions& options = {});

}  // namespace layertrace
