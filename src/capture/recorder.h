// What hooks call. Everything here is noexcept and lock-free once a thread has met the session;
// trouble is counted and the record dropped.
//
// A thread keeps a small stack of what it has open (module scopes, regions, autograd nodes), so
// that a scope that was left without its own exit (an exception between two halves of a hook) is
// closed by the one around it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "capture/backward_run.h"
#include "capture/recording.h"
#include "record/amounts.h"
#include "record/record.h"

namespace layertrace {

// Remembers which layer a module at an address was found to be, seen from a given parent.
// Direct-mapped.
struct ModuleCacheEntry {
  const void* module = nullptr;
  const void* vtable = nullptr;     // another type at the same address is another module
  std::weak_ptr<const void> owner;  // as is one that another shared_ptr holds
  LayerId parent = kNoLayer;
  LayerId layer = kNoLayer;
  LayerId root = kNoLayer;  // the layer's model
};

// One thread's side of a session.
class ThreadState {
 public:
  static constexpr std::size_t kModuleCacheSize = 512;

  struct Place {
    std::uint32_t depth = 0;
    std::uint32_t window = 0;
  };
  struct Frame {
    RecordKind end;  // the record that closes it
    bool recorded;   // its begin was taken by the buffer
    LayerId layer;   // of a module scope
    std::uint32_t window;
    const void* module;
    std::uint64_t pushed = 0;    // the id by which a device knows of it; 0 if it does not
    bool between_nodes = false;  // that id stands for what comes after an autograd node's end
    // For marks: what LiveCalls knows a scope by, a node's first sequence number; and how many
    // backward marks were open once it had begun.
    std::uint32_t run_depth = 0;
    std::uint64_t live = 0;
  };

  explicit ThreadState(std::shared_ptr<Recording> recording);
  ~ThreadState();
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;

  const Recording* recording() const noexcept { return recording_.get(); }
  Recording& shared() noexcept { return *recording_; }
  std::uint32_t depth() const noexcept { return depth_; }
  const Frame& top() const noexcept { return frames_[depth_ - 1]; }
  // The layer of the innermost module scope, kNoLayer outside any.
  LayerId current_layer() const noexcept;
  // Its module's address, nullptr outside any.
  const void* current_module() const noexcept;

  // Each returns where the new frame stands; depth 0 if there was no room for it.
  Place enter_scope(LayerId layer, const void* module, std::uint64_t sequence) noexcept {
    return enter(RecordKind::kScopeBegin, index(layer), 0, 0, sequence, layer, module);
  }
  Place enter_region(NameId name, std::uint8_t phase, std::uint64_t sequence) noexcept {
    return enter(RecordKind::kRegionBegin, index(name), 0, phase, sequence, kNoLayer, nullptr);
  }
  Place enter_node(NameId name, std::uint64_t value, std::uint8_t flags,
                   std::uint64_t sequence) noexcept {
    return enter(RecordKind::kNodeBegin, index(name), value, flags, sequence, kNoLayer, nullptr);
  }
  // Closes that frame and whatever is still open above it. A frame of another session or window is
  // left alone.
  void leave(Place place, std::uint64_t sequence, bool thrown) noexcept;

  // Operators do not take frames: there are many, and nothing looks at them. Each has a byte that
  // says what to do at its end. An operator may turn out to be an autograd node, a region of the
  // user's, or nothing that is recorded: so a composite one that calls another.
  void enter_op(NameId name, std::uint8_t flags) noexcept;
  void enter_op_as_node(NameId name, std::uint64_t value, std::uint8_t flags,
                        std::uint64_t sequence) noexcept;
  void enter_op_as_region(NameId name, std::uint8_t phase, std::uint64_t sequence) noexcept;
  void skip_op() noexcept { push_op(OpEnd::kNothing); }
  // With what was counted of it, if anything was.
  void leave_op(std::uint64_t (*sequence)(), const OpAmounts* amounts = nullptr) noexcept;

  // While operators are counted.
  void count(const OpAmounts& amounts, std::uint64_t ticks = clock_ticks()) noexcept;
  void note_shapes(NameId shapes, bool is_output) noexcept {
    buffer_->mark({clock_ticks(), 0, 0, index(shapes), RecordKind::kShapes,
                   static_cast<std::uint8_t>(is_output), 0});
  }
  // What follows is alike wherever `key` is the same, so that it need be counted only once.
  void note_counting(std::uint64_t key, bool is_counted) noexcept {
    buffer_->mark(
        {clock_ticks(), key, 0, 0, RecordKind::kCounted, static_cast<std::uint8_t>(is_counted), 0});
  }
  void note_memory(std::uint64_t address, std::uint64_t bytes, std::uint32_t device,
                   bool is_freed) noexcept {
    buffer_->mark({clock_ticks(), address, bytes, device, RecordKind::kMemory,
                   static_cast<std::uint8_t>(is_freed), 0});
  }

  // The session is over: a device hears no more of what runs here, unless something is still open,
  // which will end later.
  void end_session() noexcept {
    if (depth_ == 0) leave_device();
  }

  // Marks of layers are made on this thread, beside its records.
  bool makes_marks() const noexcept { return marks_ != nullptr; }
  // Those of a layer's backward are open.
  bool is_in_backward_run() const noexcept { return live_ != nullptr && live_->run.depth() != 0; }
  // No node waits to be run here: the marks of the last layer's backward end.
  void end_backward_run() noexcept;

  void mark(RecordKind kind, std::uint64_t value, std::uint8_t flags) noexcept {
    if (!buffer_->mark({clock_ticks(), value, 0, 0, kind, flags, 0})) return;
    ++numbered_;
    if (device_ != nullptr) [[unlikely]]
      tell_outside();
  }

  ModuleCacheEntry& module_cache(const void* module, LayerId parent) noexcept {
    constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;  // spreads what differs in a few bits only
    const std::uint64_t key = reinterpret_cast<std::uintptr_t>(module) + index(parent);
    return module_cache_[(key * kMix) >> (64 - std::bit_width(kModuleCacheSize - 1))];
  }

 private:
  static constexpr std::uint32_t kMaxOpDepth = 512;
  static constexpr std::uint32_t kMaxOpFrames = 64;
  enum class OpEnd : std::uint8_t { kNothing, kOp, kFrame, kComposite };

  Place enter(RecordKind begin, std::uint32_t id, std::uint64_t value, std::uint8_t flags,
              std::uint64_t sequence, LayerId layer, const void* module) noexcept {
    if (depth_ == capacity_ && !grow()) [[unlikely]] {
      recording_->count_lost(2);
      return {};
    }
    forget_composite();
    const std::uint32_t window = recording_->window();  // once: it may change at any time
    const auto end = static_cast<RecordKind>(static_cast<std::uint8_t>(begin) + 1);
    const bool recorded = buffer_->begin(
        {clock_ticks(), value, sequence, id, begin, flags, static_cast<std::uint16_t>(window)});
    frames_[depth_] = {end, recorded, layer, window, module};
    if (marks_ != nullptr) [[unlikely]]
      begin_mark(frames_[depth_], id, value, flags, sequence);
    if (recorded) {
      ++numbered_;
      if (device_ != nullptr) [[unlikely]]
        push_frame(frames_[depth_]);
    }
    return {++depth_, window};
  }
  void push_frame(Frame& frame) noexcept;
  void tell_outside(bool after_node = false) noexcept;
  std::uint64_t innermost_pushed() const noexcept;
  void leave_device() noexcept;

  // What marks need to know: kept only where there are any.
  struct Live {
    explicit Live(LayerMarks* marks) noexcept : run(marks) {}
    BackwardRun run;
    LiveCalls* own = nullptr;
    // Whose calls were last asked for: mostly the same thread's.
    std::uint64_t other_key = 0;
    const LiveCalls* other = nullptr;
  };
  void begin_mark(Frame& frame, std::uint32_t id, std::uint64_t value, std::uint8_t flags,
                  std::uint64_t sequence) noexcept;
  void begin_node_mark(std::uint64_t value, std::uint8_t flags, std::uint32_t base) noexcept;
  void end_mark(const Frame& frame, std::uint64_t sequence) noexcept;
  std::uint32_t run_base() const noexcept {
    return depth_ != 0 ? frames_[depth_ - 1].run_depth : 0;
  }
  bool inside_node() const noexcept;
  std::pair<std::uint64_t, bool> enclosing_call() const noexcept;
  LiveCalls* own_calls() noexcept;
  const LiveCalls* calls_of(std::uint64_t thread_key) noexcept;
  bool grow() noexcept;
  bool push_op(OpEnd end) noexcept;
  bool push_op_frame() noexcept;
  void forget_ops() noexcept;
  // Something runs inside the composite operator that has just begun: it is no record.
  void forget_composite() noexcept {
    if (composite_depth_ != 0) op_ends_[composite_depth_ - 1] = OpEnd::kNothing;
    composite_depth_ = 0;
  }

  std::shared_ptr<Recording> recording_;
  std::shared_ptr<ThreadBuffer> buffer_;
  DeviceCapture* const device_;
  LayerMarks* const marks_;
  std::unique_ptr<Live> live_;
  std::unique_ptr<Frame[]> frames_;
  std::uint64_t numbered_ = 0;     // records that have a number, ever: see has_number()
  std::uint64_t pushed_base_ = 0;  // by which a device knows what runs outside any frame
  std::uint32_t depth_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t op_depth_ = 0;
  std::uint32_t op_window_ = 0;
  std::array<OpEnd, kMaxOpDepth> op_ends_{};
  std::array<Place, kMaxOpFrames> op_frames_{};
  std::uint32_t op_frame_depth_ = 0;
  // The innermost operator, if it is a composite one in which nothing has run so far; else depth 0.
  std::uint32_t composite_depth_ = 0;
  NameId composite_name_ = kNoName;
  std::uint64_t composite_ticks_ = 0;
  std::array<ModuleCacheEntry, kModuleCacheSize> module_cache_;
};

namespace recorder {

// The session that hooks write to; nullptr when none is active.
void publish(std::shared_ptr<Recording> recording);
void withdraw() noexcept;

// Turns hooks on and off within a session.
void set_recording(bool on) noexcept;

namespace detail {
extern std::atomic<Recording*> current;
// One pointer, so that reading it is one instruction even in a shared library.
extern constinit thread_local ThreadState* state __attribute__((tls_model("initial-exec")));
ThreadState* attach() noexcept;
}  // namespace detail

// The calling thread's state in the active session, made on the first call; nullptr without a
// session, or when the thread is ending.
inline ThreadState* this_thread() noexcept {
  ThreadState* state = detail::state;
  if (state != nullptr && state->recording() == detail::current.load(std::memory_order_relaxed))
      [[likely]] {
    return state;
  }
  return detail::attach();
}

// The state of the last session this thread met, for closing what it opened there.
inline ThreadState* last_state() noexcept { return detail::state; }

// Lets the calling thread record into memory that nobody reads, to measure what that costs. No
// session may be active.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;  // it stands for a stretch of one thread's time
  Scratch& operator=(const Scratch&) = delete;

 private:
  std::shared_ptr<Recording> recording_;
  std::unique_ptr<ThreadState> thread_;
  ThreadState* outer_;
};

// In a forked child: forgets the parent's session. Its records belong to the parent alone.
void forget_after_fork() noexcept;

}  // namespace recorder
}  // namespace layertrace
