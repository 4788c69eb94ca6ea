#include "made_up_run.h"

#include <algorithm>

#include "record/chunk_pool.h"

namespace layertrace {
namespace {

constexpr std::uint32_t kBlocks = 12;
constexpr const char* kChildren[] = {"norm", "linear1", "activation", "linear2"};
constexpr std::uint64_t kThread = 1;

enum Name : std::uint32_t {
  kLinear,
  kAddmm,
  kCopy,
  kRelu,
  kCrossEntropy,
  kMm,
  kSum,
  kAdd,
  kAddmmBackward,
  kReluBackward,
  kAccumulateGrad,
  kBackward,
  kOptimizerStep,
};
constexpr const char* kNames[] = {
    "aten::linear",   "aten::addmm", "aten::copy_", "aten::relu",     "aten::cross_entropy_loss",
    "aten::mm",       "aten::sum",   "aten::add_",  "AddmmBackward0", "ReluBackward0",
    "AccumulateGrad", "backward",    "AdamW.step",
};

// Writes one thread's records with a clock that goes on by a few microseconds at each.
class Tape {
 public:
  explicit Tape(std::uint32_t layers) : layers_(layers) { add(RecordKind::kWindow, 0, 0, 1); }

  void step(std::uint64_t index) {
    begin(RecordKind::kScopeBegin, 0);
    const std::uint64_t first_node = sequence_;
    for (std::uint32_t layer = 1; layer < layers_; ++layer) {
      const bool is_block = (layer - 1) % 5 == 0;
      if (is_block) begin(RecordKind::kScopeBegin, layer);
      if (!is_block) call(layer);
      if (layer % 5 == 0) end(RecordKind::kScopeEnd);
    }
    end(RecordKind::kScopeEnd);
    op(kCrossEntropy);
    begin(RecordKind::kRegionBegin, kBackward, 0, static_cast<std::uint8_t>(Phase::kBackward));
    for (std::uint64_t node = sequence_; node-- != first_node;) backward(node);
    end(RecordKind::kRegionEnd);
    begin(RecordKind::kRegionBegin, kOptimizerStep, 0,
          static_cast<std::uint8_t>(Phase::kOptimizer));
    for (std::uint32_t layer = 0; layer < layers_; ++layer) op(kAdd);
    end(RecordKind::kRegionEnd);
    add(RecordKind::kStep, 0, index, 0);
  }

  std::vector<Record> take() { return std::move(records_); }

 private:
  void add(RecordKind kind, std::uint32_t id, std::uint64_t value, std::uint8_t flags) {
    now_ += 1500 + (records_.size() * 7919) % 9000;
    records_.push_back({now_, value, sequence_, id, kind, flags, 0});
  }
  void begin(RecordKind kind, std::uint32_t id, std::uint64_t value = 0, std::uint8_t flags = 0) {
    add(kind, id, value, flags);
  }
  void end(RecordKind kind) { add(kind, 0, 0, 0); }
  void op(Name name) {
    begin(RecordKind::kOpBegin, name);
    end(RecordKind::kOpEnd);
  }

  void call(std::uint32_t layer) {
    begin(RecordKind::kScopeBegin, layer);
    begin(RecordKind::kOpBegin, kLinear, 0, kOpComposite);
    begin(RecordKind::kOpBegin, kAddmm);
    op(kCopy);
    end(RecordKind::kOpEnd);
    end(RecordKind::kOpEnd);
    op(kRelu);
    sequence_ += 2;
    end(RecordKind::kScopeEnd);
  }

  void backward(std::uint64_t node) {
    const bool relu = node % 2 == 1;
    begin(RecordKind::kNodeBegin, relu ? kReluBackward : kAddmmBackward, pack({node, kThread}));
    op(kMm);
    if (!relu) op(kSum);
    end(RecordKind::kNodeEnd);
    if (relu) return;
    begin(RecordKind::kNodeBegin, kAccumulateGrad, parameter(node / 2), kAccumulates);
    op(kAdd);
    end(RecordKind::kNodeEnd);
  }

  // Two nodes in each call: so the call's number, and the layer it belongs to.
  std::uint64_t parameter(std::uint64_t call) const {
    const std::uint64_t calls = std::uint64_t{layers_ - 1} / 5 * 4;
    const std::uint64_t number = call % calls;
    return 0x1000 + (number / 4 * 5 + number % 4 + 2) * 64;
  }

  std::uint32_t layers_;
  std::uint64_t now_ = 1'000'000;
  std::uint64_t sequence_ = 0;
  std::vector<Record> records_;
};

}  // namespace

MadeUpRun::MadeUpRun() {
  for (const char* name : kNames) dictionary_.names.emplace_back(name);
  const auto add = [&](std::string path, std::string name, std::string type, LayerId parent) {
    const LayerId layer{static_cast<std::uint32_t>(dictionary_.layers.size())};
    dictionary_.layers.push_back({.path = std::move(path),
                                  .name = std::move(name),
                                  .type = std::move(type),
                                  .parent = parent});
    dictionary_.parameters.push_back({0x1000 + std::uint64_t{index(layer)} * 64, layer});
    return layer;
  };
  const LayerId root = add("", "Net", "Net", kNoLayer);
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    const std::string path = "blocks." + std::to_string(block);
    const LayerId parent = add(path, std::to_string(block), "Block", root);
    for (const char* child : kChildren) add(path + "." + child, child, "Linear", parent);
  }
}

std::vector<Record> MadeUpRun::records(int steps) const {
  Tape tape(static_cast<std::uint32_t>(dictionary_.layers.size()));
  for (int step = 0; step < steps; ++step) tape.step(static_cast<std::uint64_t>(step));
  return tape.take();
}

SpanLog MadeUpRun::spans(int steps) const {
  SpanLog log;
  Resolver resolver(dictionary_, log, TickScale(), std::size_t{1} << 16);
  resolver.open_lane(0, kThread, kThread, "main");
  const std::vector<Record> all = records(steps);
  feed(resolver, all);
  resolver.finish(all.back().ticks);
  return log;
}

SpanLog MadeUpRun::module_calls(int calls) const {
  SpanLog log;
  log.open_lane(0, kThread, "main");
  std::uint64_t now_ns = 1'000'000;
  log.window(0, now_ns, true, 0);
  for (int call = 0; call < calls; ++call) {
    const auto number = static_cast<std::uint64_t>(call);
    now_ns += 1500 + number * 7919 % 9000;
    log.begin(0, {.start_ns = now_ns,
                  .kind = SpanKind::kScope,
                  .phase = Phase::kForward,
                  .layer = LayerId{static_cast<std::uint32_t>(number % dictionary_.layers.size())},
                  .call = std::uint64_t{1} << 40 | number});
    now_ns += 1500 + number * 104'729 % 90'000;
    log.end(0, Track::kScopes, now_ns, EndedBy::kExit);
  }
  return log;
}

void feed(RecordConsumer& consumer, std::span<const Record> records) {
  while (!records.empty()) {
    const auto piece = records.first(std::min<std::size_t>(records.size(), Chunk::kCapacity));
    consumer.index(0, piece);
    consumer.resolve(0, piece);
    records = records.subspan(piece.size());
  }
}

void SpanLog::open_lane(Lane /*lane*/, std::uint64_t /*tid*/, const std::string& /*name*/) {}
void SpanLog::begin(Lane /*lane*/, const SpanBegin& span) {
  events_.emplace_back(span);
  ++spans_;
}
void SpanLog::end(Lane /*lane*/, Track track, std::uint64_t end_ns, EndedBy /*by*/) {
  events_.emplace_back(End{track, end_ns});
}
void SpanLog::window(Lane /*lane*/, std::uint64_t ns, bool on, std::uint64_t step) {
  events_.emplace_back(Window{ns, on, step});
}
void SpanLog::step(Lane /*lane*/, std::uint64_t ns, std::uint64_t index) {
  events_.emplace_back(Step{ns, index});
}
void SpanLog::gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) {}

void SpanLog::replay(SpanSink& sink) const {
  sink.open_lane(0, kThread, "main");
  for (const auto& event : events_) {
    if (const auto* span = std::get_if<SpanBegin>(&event)) sink.begin(0, *span);
    if (const auto* end = std::get_if<End>(&event))
      sink.end(0, end->track, end->ns, EndedBy::kExit);
    if (const auto* step = std::get_if<Step>(&event)) sink.step(0, step->ns, step->index);
    if (const auto* window = std::get_if<Window>(&event)) {
      sink.window(0, window->ns, window->on, window->step);
    }
  }
}

}  // namespace layertrace
