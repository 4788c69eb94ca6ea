// Reading a saved run back. A `.pftrace` that layertrace wrote opens in any Perfetto UI and gives
// the same Profile again.
//
//   auto profile = layertrace::load("run.pftrace");
//   if (profile) std::cout << layertrace::tree(*profile);
//
// load() and info() read the file from start to end once, hold a bounded part of it in memory, and
// leave it unchanged. A file that was cut off (the program was killed) gives what it holds, with
// Health::cut set. A file that is not ours gives an Error that says what it looks like.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/report.h>
#include <layertrace/result.h>

namespace layertrace {

// The version of this library, and the newest trace format that it reads and writes.
inline constexpr const char* kVersion = "0.1.0";
inline constexpr int kFormatVersion = 1;

LAYERTRACE_API Result<Profile> load(const std::string& path);

// A trace that torch.profiler wrote (Kineto's JSON: plain, gzip or zstd), attributed: kernels to
// the modules that asked for them, forward and backward, as docs/import.md tells. Chrome's JSON of
// other tools comes in as regions.
//
//   auto profile = layertrace::import_trace("trace.json.gz", {.output = "run.pftrace"});
//
// Reads the file once, holds about a fifth of the JSON in memory, and writes `output`, where it is
// given, whole or not at all. What cannot be read or kept of the file is counted in Health.
struct ImportOptions {
  std::string output = {};  // a .pftrace; "" for none
  // Called now and then on the calling thread, with the bytes of the file that were read.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
};

LAYERTRACE_API Result<Profile> import_trace(const std::string& path,
                                            const ImportOptions& options = {});

// What a trace holds, without the layers' figures.
struct TraceInfo {
  struct Thread {
    std::string name;
    std::uint64_t tid = 0;
    std::uint64_t scopes = 0;
    std::uint64_t activities = 0;
  };
  RunInfo run;
  std::uint64_t file_bytes = 0;
  std::uint64_t packets = 0;
  std::uint64_t layers = 0;
  std::uint64_t steps = 0;
  std::uint64_t scopes = 0;          // module calls, forward and recompute
  std::uint64_t backward_spans = 0;  // layers' backward spans
  std::uint64_t nodes = 0;           // autograd nodes
  std::uint64_t activities = 0;
  // What GPUs did, and calls that asked for it.
  std::uint64_t kernels = 0;
  std::uint64_t copies = 0;  // and sets
  std::uint64_t launches = 0;
  // Where operators were counted.
  std::uint64_t counted_steps = 0;        // of the steps, those that were counted themselves
  std::uint64_t counted_operators = 0;    // calls
  std::uint64_t uncounted_operators = 0;  // of these, without a formula
  double flops = 0;                       // in all counted steps
  std::uint64_t memory_events = 0;        // blocks that were taken and given back
  DeviceInfo device;
  std::vector<MetricValue> metrics;  // that the user gave to the run
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  bool cut = false;
  std::vector<Thread> threads;
};

LAYERTRACE_API Result<TraceInfo> info(const std::string& path);

// How many calls() gives at most where no limit is asked for.
inline constexpr std::size_t kMostCalls = 250'000;

// Every single call of a layer, which a Profile has the sums of only: a row for each forward,
// recomputation and backward, in the order in which they began (docs/tables.md). Options as of
// table(). Of a file with more than kMostCalls, an Error unless a limit is given.
LAYERTRACE_API Result<Table> calls(const std::string& path, const TableOptions& options = {});

}  // namespace layertrace
