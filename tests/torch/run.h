// A recorded run as the tests see it: the Profile, each span of the saved trace, and beside them
// what PyTorch says of the same run (pytorch_log.h). Neither side knows of the other.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

#include "attribute/span.h"
#include "torch/pytorch_log.h"
#include "torch/torch_hooks.h"

namespace layertrace::test {

// A model of one's own, its forward written in the test.
struct ModelImpl : torch::nn::Module {
  using Body = std::function<torch::Tensor(torch::Tensor)>;
  explicit ModelImpl(Body forward_body = {}) : body(std::move(forward_body)) {}

  template <typename Module>
  Module add(const std::string& name, Module module) {
    return register_module(name, std::move(module));
  }
  torch::Tensor forward(torch::Tensor x) {
    ModuleScope scope(this);
    return body(std::move(x));
  }
  Body body;
};
TORCH_MODULE(Model);

struct Span {
  SpanKind kind = SpanKind::kScope;
  Phase phase = Phase::kOther;
  Cause cause = Cause::kNone;
  std::string layer;  // its path; kNobody for none
  std::string name;   // of a node, region or activity
  std::uint64_t call = 0;
  std::uint64_t sequence = 0;  // a node's number + 1
  bool accumulates = false;
  std::uint64_t tid = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  EndedBy ended_by = EndedBy::kExit;
  int around = -1;  // index of the span around it on its track
};

struct RunOptions {
  bool ops = true;
  NodeSource nodes = NodeSource::kAuto;
  Schedule schedule = {};
  Counting count = Counting::kFirst;
  int steps = 1;
  bool log = true;  // PyTorch's side too
};

struct Recorded {
  RunOptions options;
  Profile profile;
  std::vector<Span> spans;  // in the order of the file: by start, within a thread
  std::vector<NodeSeen> nodes_seen;
  std::vector<OpSeen> ops_seen;

  const Layer& layer(
      const std::string& path) const;  // fails the test and gives an empty one where there is none
  double calls(const std::string& path, Phase phase = Phase::kForward) const;
  bool has(const std::string& path) const { return profile.find(path) != nullptr; }

  std::vector<Span> select(SpanKind kind) const;
  // "path" of each scope in the order of entry; a phase other than forward is added: "fc
  // recompute".
  Strings scopes() const;
  // "name of path" of each node, in order.
  Strings nodes() const;
  // "name of path" of each region: "backward", "Adam.step", "loss"…
  Strings regions() const;
  // Names of a layer's own activities in that phase; with `below`, its children's too.
  Strings activities(const std::string& path, Phase phase, bool below = false) const;
};

using Models = std::vector<std::pair<std::string, torch::nn::Module*>>;

// Records `step`, run `steps` times with a step() after each; reads the trace back, and checks what
// must hold for every run: file and Profile agree, spans nest, figures are the sums of the spans,
// nothing is dropped, nothing is left behind.
Recorded record(const Models& models, const std::function<void()>& step,
                const RunOptions& options = {});
Recorded record(torch::nn::Module& model, const std::function<void()>& step,
                const RunOptions& options = {});

// Reads the spans of a saved trace.
std::vector<Span> read_spans(const std::string& path);
// A name in the test's working directory, of its own.
std::string trace_path();

// All nodes that ran belong to whom the graph says, and so does each operator that ran for them.
// (Callbacks without operators see only those nodes that were called.)
void expect_owners(const Recorded& run, const Makers& makers);
void expect_node_owners(const Recorded& run, const Makers& makers);

// The same step, recorded in all ways there are of seeing nodes: each must give the same owners.
void for_each_way(const std::function<void(const RunOptions&)>& test);

}  // namespace layertrace::test
