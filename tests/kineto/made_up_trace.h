// Traces written by hand, event by event, and imported.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/trace.h>

#include "base/files.h"

namespace layertrace::kineto {

class MadeUpTrace {
 public:
  // Members of the outermost object but for the events: `"schemaVersion": 1`.
  explicit MadeUpTrace(std::string head = R"("schemaVersion": 1)") : head_(std::move(head)) {}

  MadeUpTrace& add(const std::string& event) {
    events_.push_back(event);
    return *this;
  }
  // Times in µs.
  MadeUpTrace& x(const std::string& cat, const std::string& name, double ts, double dur,
                 const std::string& args = "", int tid = 1) {
    return add(R"({"ph": "X", "cat": ")" + cat + R"(", "name": ")" + name +
               R"(", "pid": 1, "tid": )" + std::to_string(tid) + R"(, "ts": )" +
               std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) + R"(, "args": {)" + args +
               "}}");
  }
  MadeUpTrace& module(const std::string& name, double ts, double dur, int tid = 1) {
    return x("python_function", "nn.Module: " + name, ts, dur, R"("Python id": 1)", tid);
  }
  MadeUpTrace& launch(int correlation, double ts, int tid = 1,
                      const std::string& name = "cudaLaunchKernel") {
    return x("cuda_runtime", name, ts, 1,
             R"("cbid": 211, "correlation": )" + std::to_string(correlation), tid);
  }
  MadeUpTrace& kernel(int correlation, double ts, double dur, const std::string& name = "kernel") {
    return x("kernel", name, ts, dur,
             R"("device": 0, "stream": 7, "correlation": )" + std::to_string(correlation), 7);
  }
  MadeUpTrace& forward_op(const std::string& name, int sequence, double ts, double dur,
                          int tid = 1) {
    return x("cpu_op", name, ts, dur,
             R"("Sequence number": )" + std::to_string(sequence) + R"(, "Fwd thread id": 0)", tid);
  }
  MadeUpTrace& node(const std::string& name, int sequence, double ts, double dur, int tid = 2,
                    int forward_thread = 1) {
    return x("cpu_op", "autograd::engine::evaluate_function: " + name, ts, dur,
             R"("Sequence number": )" + std::to_string(sequence) + R"(, "Fwd thread id": )" +
                 std::to_string(forward_thread),
             tid);
  }

  std::string json() const {
    std::string text = "{" + head_ + R"(, "traceEvents": [)";
    for (std::size_t i = 0; i < events_.size(); ++i) text += (i == 0 ? "\n" : ",\n") + events_[i];
    return text + "\n]}";
  }
  Result<Profile> import(const std::string& output = "") const {
    return import_bytes(json(), output);
  }
  static Result<Profile> import_bytes(std::string_view bytes, const std::string& output = "",
                                      const std::string& name = "made_up_trace.json") {
    const test::TempFolder folder;  // tests run side by side
    const std::string path = folder.file(name);
    std::ofstream(path, std::ios::binary) << bytes;
    return import_trace(path, {.output = output});
  }

 private:
  std::string head_;
  std::vector<std::string> events_;
};

inline double activities(const Profile& profile, std::string_view path, Phase phase) {
  const Layer* layer = profile.find(path);
  EXPECT_NE(layer, nullptr) << path;
  return layer == nullptr ? -1 : layer->phase(phase).activities.mean;
}

inline std::uint64_t count_of(const std::vector<Unattributed>& groups, std::string_view cause) {
  for (const Unattributed& group : groups) {
    if (group.cause.find(cause) != std::string::npos) return group.count;
  }
  return 0;
}

}  // namespace layertrace::kineto
