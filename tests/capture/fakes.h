// Those outside layertrace who are told of layers and frames, as a test wants them: they write down
// what they are told.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/result.h>

#include "capture/device.h"
#include "capture/layer_marks.h"
#include "record/device_record.h"

namespace layertrace::test {

// "f1( b2( ) )": layer 1's forward, in it layer 2's backward. A recomputed forward is "r1(", a
// region "g5:4(" with its name and phase.
class MarkLog final : public LayerMarks {
 public:
  struct Mark {
    bool is_region = false;
    LayerId layer = kNoLayer;
    NameId name = kNoName;
    Phase phase = Phase::kOther;
    std::uint64_t frame = 0;
  };

  void begin_layer(LayerId layer, Phase phase, std::uint64_t frame) noexcept override {
    const char* letter = phase == Phase::kForward     ? "f"
                         : phase == Phase::kBackward  ? "b"
                         : phase == Phase::kRecompute ? "r"
                                                      : "?";
    add(letter + std::to_string(index(layer)) + "(");
    open.push_back({.layer = layer, .phase = phase, .frame = frame});
  }
  void begin_region(NameId name, Phase phase) noexcept override {
    add("g" + std::to_string(index(name)) + ":" + std::to_string(static_cast<int>(phase)) + "(");
    open.push_back({.is_region = true, .name = name, .phase = phase});
  }
  void end() noexcept override {
    add(")");
    if (open.empty()) {
      ++too_many;
    } else {
      open.pop_back();
    }
  }

  // What came since the last call.
  std::string take() { return std::exchange(text_, {}); }

  std::vector<Mark> open;
  int too_many = 0;  // ends without a begin

 private:
  void add(const std::string& text) {
    if (!text_.empty()) text_ += ' ';
    text_ += text;
  }
  std::string text_;
};

// Knows what each thread has pushed, as CUPTI does; here one thread's.
class PushLog final : public DeviceCapture {
 public:
  Result<void> enable() noexcept override { return {}; }
  void disable() noexcept override {}
  void close() noexcept override {}
  void push(std::uint64_t frame) noexcept override { pushed.push_back(frame); }
  void pop(std::uint64_t outer) noexcept override {
    if (pushed.empty()) {
      ++too_many;
      return;
    }
    pushed.pop_back();
    if (outer != 0 && (pushed.empty() || pushed.back() != outer)) ++wrong_outer;
  }
  void drain(DeviceConsumer& /*consumer*/, bool /*all*/) override {}
  GpuHealth health() const override { return {}; }
  std::string name() const override { return "none"; }

  // By which the device knows what runs now; 0 for nothing.
  std::uint64_t top() const { return pushed.empty() ? 0 : pushed.back(); }

  std::vector<std::uint64_t> pushed;
  int too_many = 0;
  int wrong_outer = 0;  // told of another innermost frame than is left
};

}  // namespace layertrace::test
