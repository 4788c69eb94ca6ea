#include "attribute/memory_table.h"

#include <numeric>
#include <utility>

namespace layertrace {
namespace {

bool is_of_backward(Phase phase) noexcept {
  return phase == Phase::kBackward || phase == Phase::kRecompute;
}

// What a forward took, or its repetition, and a backward gave back.
bool was_kept(Phase taken, Phase given_back) noexcept {
  return taken != Phase::kBackward && taken != given_back && is_of_backward(given_back);
}

}  // namespace

// ---- Steps ----

void MemoryTable::begin_step(std::uint64_t ns) {
  step_ = {};
  step_.start_ns = ns;
}

// Other threads may tell a little before the step's counting is told of.
void MemoryTable::counting(const CountingSpan& span) {
  if (span.is_counted) {
    step_.state = State::kOn;
  } else if (step_.state != State::kOn) {
    drop_step();
  }
}

void MemoryTable::drop_step() {
  const std::uint64_t start_ns = step_.start_ns;
  step_ = {};
  step_.state = State::kOff;
  step_.start_ns = start_ns;
  forget_blocks();
}

void MemoryTable::end_step() {
  if (step_.state != State::kOn) return drop_step();
  ++steps_;
  add_sums(step_.sums);
  add_devices(step_.devices);
  end_backward();
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    gradients_[kind] = std::max(gradients_[kind], step_.gradients[kind]);
    optimizers_[kind] = std::max(optimizers_[kind], of_optimizers_[kind]);
  }
}

void MemoryTable::end_backward() {
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    step_.gradients[kind] = std::max(step_.gradients[kind], step_.of_backward[kind]);
}

void MemoryTable::add_sums(const Sums& sums) {
  for (const auto& [slot, of_kinds] : sums) {
    auto& own = sums_[slot];
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      own[kind].allocated += of_kinds[kind].allocated;
      own[kind].freed += of_kinds[kind].freed;
      own[kind].kept += of_kinds[kind].kept;
      own[kind].peak = std::max(own[kind].peak, of_kinds[kind].peak);
    }
  }
}

void MemoryTable::add_devices(const Devices& devices) {
  for (const auto& [number, device] : devices) {
    const auto [found, is_new] = devices_.try_emplace(number, device);
    if (is_new) continue;
    Device& own = found->second;
    const std::uint64_t allocated = own.allocated + device.allocated;
    const std::uint64_t freed = own.freed + device.freed;
    if (device.peak > own.peak) own = device;
    own.allocated = allocated;
    own.freed = freed;
  }
}

// ---- Blocks ----

void MemoryTable::memory(const MemorySpan& span) {
  if (step_.state == State::kOff) return;
  const int number = span.device == kHostDevice ? -1 : static_cast<int>(span.device);
  Device& device = step_.devices[number];
  if (span.is_freed) {
    give_back(span, device);
  } else {
    take(span, device);
  }
  device.curve.add(
      {span.ns - std::min(span.ns, step_.start_ns), device.live, span.layer, span.phase});
}

void MemoryTable::take(const MemorySpan& span, Device& device) {
  const Kind kind = kind_of(span);
  const auto bytes = static_cast<std::int64_t>(span.bytes);
  device.allocated += span.bytes;
  device.live += bytes;
  if (device.live > device.peak) {
    device.peak = device.live;
    device.peak_layer = span.layer;
    device.peak_phase = span.phase;
    device.peak_ns = span.ns - std::min(span.ns, step_.start_ns);
  }
  step_.live[kind] += bytes;
  step_.sums[slot_of(span.layer, span.phase)][kind].allocated += span.bytes;
  visit(span.layer, span.phase);

  const auto found = blocks_.find(key_of(span));
  if (found != blocks_.end()) {  // nobody told that it was given back
    forget(found->second, kind);
    blocks_.erase(found);
  }
  if (blocks_.size() >= most_blocks_) {
    ++not_followed_;
    return;
  }
  blocks_.emplace(key_of(span), Block{span.bytes, steps_, span.layer, span.phase});
  if (span.phase == Phase::kBackward) step_.of_backward[kind] += bytes;
  if (span.phase == Phase::kOptimizer) of_optimizers_[kind] += bytes;
}

void MemoryTable::give_back(const MemorySpan& span, Device& device) {
  const Kind kind = kind_of(span);
  std::uint64_t bytes = span.bytes;  // not told of the host's
  if (const auto found = blocks_.find(key_of(span)); found != blocks_.end()) {
    const Block block = found->second;
    blocks_.erase(found);
    forget(block, kind);
    bytes = block.bytes;
    if (block.step == steps_) {
      Sum& sum = step_.sums[slot_of(block.layer, block.phase)][kind];
      sum.freed += bytes;
      if (was_kept(block.phase, span.phase)) sum.kept += bytes;
    }
  }
  device.freed += bytes;
  device.live -= static_cast<std::int64_t>(bytes);
  step_.live[kind] -= static_cast<std::int64_t>(bytes);
}

void MemoryTable::forget(const Block& block, Kind kind) {
  const auto bytes = static_cast<std::int64_t>(block.bytes);
  if (block.phase == Phase::kBackward && block.step == steps_) step_.of_backward[kind] -= bytes;
  if (block.phase == Phase::kOptimizer) of_optimizers_[kind] -= bytes;
}

// What becomes of them is not told: others may be at their addresses when the counting goes on.
void MemoryTable::forget_blocks() {
  blocks_.clear();
  of_optimizers_ = {};
}

void MemoryTable::visit(LayerId layer, Phase phase) {
  const auto raise = [this, phase](LayerId each) {
    auto& sums = step_.sums[slot_of(each, phase)];
    for (std::size_t kind = 0; kind < kKinds; ++kind)
      sums[kind].peak = std::max(sums[kind].peak, step_.live[kind]);
  };
  if (layer == kNoLayer) return raise(kNoLayer);
  for (; layer != kNoLayer; layer = dictionary_.layers[index(layer)].parent) raise(layer);
}

// ---- The whole ----

void MemoryTable::fill(Profile& profile) const {
  if (steps_ == 0) return;
  const bool has_gpu = !devices_.empty() && devices_.rbegin()->first >= 0;
  const Kind kind = has_gpu ? kGpu : kHost;
  fill_layers(profile, kind);
  fill_devices(profile);
  profile.gradient_bytes = static_cast<double>(gradients_[kind]);
  profile.optimizer_bytes = static_cast<double>(optimizers_[kind]);
}

void MemoryTable::fill_layers(Profile& profile, Kind kind) const {
  const auto steps = static_cast<double>(steps_);
  for (const auto& [slot, of_kinds] : sums_) {
    const Sum& sum = of_kinds[kind];
    const auto phase = static_cast<std::size_t>(slot & 0xffU);
    const LayerId layer{static_cast<std::uint32_t>(slot >> 8)};
    const auto add = [&sum, steps](MemoryStats& memory) {
      memory.allocated += static_cast<double>(sum.allocated) / steps;
      memory.freed += static_cast<double>(sum.freed) / steps;
      memory.kept += static_cast<double>(sum.kept) / steps;
      memory.peak = std::max(memory.peak, static_cast<double>(sum.peak));
    };
    if (layer == kNoLayer || index(layer) >= profile.layers.size()) {
      add(profile.outside[phase].memory);
      continue;
    }
    for (int at = static_cast<int>(index(layer)); at >= 0;
         at = profile.layers[static_cast<std::size_t>(at)].parent)
      add(profile.layers[static_cast<std::size_t>(at)].phases[phase].memory);
  }
}

void MemoryTable::fill_devices(Profile& profile) const {
  const auto steps = static_cast<double>(steps_);
  const auto index_of = [&profile](LayerId layer) {
    const bool is_known = layer != kNoLayer && index(layer) < profile.layers.size();
    return is_known ? static_cast<int>(index(layer)) : -1;
  };
  for (const auto& [number, device] : devices_) {
    std::vector<MemoryPoint> timeline;
    for (const MemoryCurve::Point& point : device.curve.points()) {
      timeline.push_back({.ns = static_cast<double>(point.ns),
                          .bytes = static_cast<double>(point.bytes),
                          .layer = index_of(point.layer),
                          .phase = point.phase});
    }
    profile.device_memory.push_back({.device = number,
                                     .allocated = static_cast<double>(device.allocated) / steps,
                                     .freed = static_cast<double>(device.freed) / steps,
                                     .peak = static_cast<double>(device.peak),
                                     .peak_layer = index_of(device.peak_layer),
                                     .peak_phase = device.peak_phase,
                                     .peak_ns = static_cast<double>(device.peak_ns),
                                     .timeline = std::move(timeline)});
  }
}

std::vector<std::string> MemoryTable::notes() const {
  if (not_followed_ == 0) return {};
  return {std::to_string(not_followed_) +
          " blocks of memory were too many to be remembered: they count as allocated, never as "
          "freed or kept"};
}

// ---- Forecast ----

MemoryForecast forecast(const Profile& profile) {
  MemoryForecast result;
  const auto kept = [](const std::array<PhaseStats, kPhaseCount>& phases) {
    double bytes = 0;
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
      // A recomputation's are there for a part of the backward only.
      if (static_cast<Phase>(p) != Phase::kRecompute) bytes += phases[p].memory.kept;
    }
    return bytes;
  };
  result.activations = kept(profile.outside);
  for (const Layer& layer : profile.layers) {
    for (const Parameter& parameter : layer.parameters) {
      if (parameter.trainable && !parameter.buffer && parameter.shared_with.empty())
        result.gradients += static_cast<double>(parameter.bytes);
    }
    if (layer.parent >= 0) continue;
    result.parameters += static_cast<double>(layer.param_bytes);
    result.activations += kept(layer.phases);
  }
  if (result.gradients == 0) result.gradients = profile.gradient_bytes;
  // Nothing made while counting may mean that there is none, or that it was there before.
  result.optimizer = profile.optimizer_state_bytes.value_or(profile.optimizer_bytes);
  result.optimizer_known = profile.optimizer_state_bytes.has_value() || result.optimizer > 0;
  return result;
}

}  // namespace layertrace
