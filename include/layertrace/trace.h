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
#include <string>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/result.h>

namespace layertrace {

// The version of this library, and the newest trace format that it reads and writes.
inline constexpr const char* kVersion = "0.1.0";
inline constexpr int kFormatVersion = 1;

LAYERTRACE_API Result<Profile> load(const std::string& path);

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
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  bool cut = false;
  std::vector<Thread> threads;
};

LAYERTRACE_API Result<TraceInfo> info(const std::string& path);

}  // namespace layertrace
