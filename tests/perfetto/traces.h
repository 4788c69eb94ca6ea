// Traces made from hand-written records, in memory and in files, and what comes back from them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "attribute/fold.h"
#include "attribute/records.h"
#include "attribute/span_log.h"
#include "base/byte_sink.h"
#include "perfetto/trace_reader.h"
#include "perfetto/trace_writer.h"

namespace layertrace::test {

using Bytes = std::vector<std::uint8_t>;

class Memory final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> block) override {
    bytes.insert(bytes.end(), block.begin(), block.end());
    ++blocks;
  }
  Bytes bytes;
  int blocks = 0;
};

inline RunInfo a_run() {
  RunInfo run;
  run.layertrace_version = "0.1.0";
  run.format_version = kFormatVersion;
  run.torch_version = "2.15.0";
  run.host = "host";
  run.os = "an os";
  run.cpu = "a processor";
  run.cpu_count = 2;
  run.memory_bytes = std::uint64_t{1} << 34;
  run.pid = 4711;
  run.program = "trainer";
  run.name = "wide";
  run.command = "trainer --lr 1";
  run.commit = "0a1b";
  run.python_version = "3.11.7";
  run.clock = "tsc";
  run.created = "2026-01-01T00:00:00Z";
  run.simulated = "simulated H100-class GPU";
  return run;
}

inline Health a_health() {
  Health health;
  health.emitted = 12;
  health.recorded = 10;
  health.dropped = 2;
  health.scope_cost_ns = 50.25;
  health.op_cost_ns = 101.5;
  health.writer_cpu_ns = 1234;
  health.tracing_share = 0.0625;
  health.notes = {"a note", "another"};
  return health;
}

// The whole trace of a script, its closing record included where `closed`.
inline Bytes write(const Script& script, bool closed = true, const RunInfo& run = a_run()) {
  Memory out;
  const auto writer = TraceWriter::make(script.dictionary, out, run);
  feed(script, *writer, std::max<std::size_t>(script.written.size(), 1), kEnd);
  if (closed) {
    writer->close(a_health(), kEnd);
  } else {
    writer->flush();
  }
  return out.bytes;
}

// A file that is there as long as this is.
class File {
 public:
  explicit File(std::span<const std::uint8_t> bytes)
      : path_(testing::TempDir() + "/trace_" + unique()) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  explicit File(const std::string& text)
      : File(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size())) {}
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  static std::string unique() {
    static int number = 0;
    return std::to_string(getpid()) + "_" + std::to_string(number++) + ".pftrace";
  }
  std::string path_;
};

// What a reader makes of these bytes: every call that it makes of its sink, as text.
struct ReadBack {
  std::string stream;
  Dictionary dictionary;
  Result<ReadSummary> summary = Error{"", "", ""};
};
inline ReadBack read(std::span<const std::uint8_t> bytes) {
  const File file(bytes);
  ReadBack result;
  SpanLog log(result.dictionary);
  result.summary = read_trace(file.path(), result.dictionary, log);
  result.stream = log.stream();
  return result;
}

// A bit of everything that a trace can hold.
inline void fill(Script& script) {
  script.add_parameter(0xabc, "a");
  ThreadScript& t = script.thread(1);
  ThreadScript& other = script.thread(2);
  t.on(10, 3).begin_op(11, "aten::randn").end_op(12);
  t.enter(20, "")
      .enter(30, "a")
      .begin_op(31, "aten::linear", true)
      .op(32, 38, "aten::mm")
      .end_op(39)
      .make(2);
  t.leave(40).enter(45, "a.b").make(1).leave_thrown(46).make(1).leave(50);
  t.enter(52, "(Loss)").op(53, 54, "aten::mse").make(1).leave(55).op(56, 57, "aten::sum").make(1);
  t.backward(60).node(61, "SumBackward0", 5).op(62, 63, "aten::expand").end(64);
  t.node(65, "MseBackward0", 4).end(66).node(67, "AddBackward0", 3).end(68);
  t.node(70, "MmBackward0", 1).op(71, 72, "aten::mm").end(73).accumulate(74, 0xabc).end(75);
  t.accumulate(76, 0xdef).end(77).node_of(78, "Foreign0", 1, 99).end(79).end_backward(80);
  other.op(81, 82, "aten::stray")
      .enter(83, "a")
      .begin_op(84, "aten::conv")
      .op(85, 86, "aten::copy_");
  other.end_op(87).leave(88);
  t.region(90, "Adam.step", Phase::kOptimizer).op(91, 92, "aten::add_").end_region(93);
  t.region(94, "mine")
      .end_region(95)
      .gap(96, 7)
      .step(100, 3)
      .enter(110, "")
      .leave(120)
      .step(130, 4);
  t.off(130, 5).in_window(1).on(200, 9).enter(210, "").enter(220, "a");
}

}  // namespace layertrace::test
