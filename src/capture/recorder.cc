#include "capture/recorder.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include <layertrace/layertrace.h>

namespace layertrace {

namespace detail {
constinit std::atomic<std::uint32_t> recording{0};
constinit std::atomic<std::uint32_t> follows_calls{0};
}  // namespace detail

ThreadState::ThreadState(std::shared_ptr<Recording> recording)
    : recording_(std::move(recording)),
      buffer_(recording_->add_thread()),
      device_(recording_->device()),
      marks_(recording_->marks()),
      live_(marks_ != nullptr ? std::make_unique<Live>(marks_) : nullptr) {
  grow();
}

ThreadState::~ThreadState() {
  leave_device();
  buffer_->retire();
}

// What is open goes on in the program, but nobody will hear of its end: other tools must not find
// it open for ever.
void ThreadState::leave_device() noexcept {
  if (live_ != nullptr) live_->run.close(0);
  for (std::uint32_t i = depth_; i != 0; --i) {
    Frame& frame = frames_[i - 1];
    if (marks_ != nullptr && frame.end != RecordKind::kNodeEnd) marks_->end();
    if (std::exchange(frame.pushed, 0) != 0) device_->pop(0);
  }
  depth_ = 0;
  if (std::exchange(pushed_base_, 0) != 0) device_->pop(0);
}

LayerId ThreadState::current_layer() const noexcept {
  for (std::uint32_t i = depth_; i != 0; --i) {
    if (frames_[i - 1].end == RecordKind::kScopeEnd) return frames_[i - 1].layer;
  }
  return kNoLayer;
}

const void* ThreadState::current_module() const noexcept {
  for (std::uint32_t i = depth_; i != 0; --i) {
    if (frames_[i - 1].end == RecordKind::kScopeEnd) return frames_[i - 1].module;
  }
  return nullptr;
}

void ThreadState::push_frame(Frame& frame) noexcept {
  frame.pushed = frame_id(recording_->session(), buffer_->key(), numbered_);
  device_->push(frame.pushed);
}

std::uint64_t ThreadState::innermost_pushed() const noexcept {
  for (std::uint32_t i = depth_; i != 0; --i) {
    if (frames_[i - 1].pushed != 0) return frames_[i - 1].pushed;
  }
  return pushed_base_;
}

// Outside any module it is not the frame alone that tells what runs: after the model's forward,
// say, comes the loss. There a device learns of every record.
//
// What runs between two nodes is the engine's, after whichever: there it need not learn of each,
// only of one that is not long ago.
void ThreadState::tell_outside(bool after_node) noexcept {
  constexpr std::uint64_t kLong = 4096;
  if (depth_ == 0 && after_node) {
    // On a thread of the engine's. It outlives the session, whose id it could not give back.
    if (std::exchange(pushed_base_, 0) != 0) device_->pop(0);
    return;
  }
  if (depth_ != 0 && frames_[depth_ - 1].end != RecordKind::kRegionEnd) return;
  std::uint64_t& pushed = depth_ != 0 ? frames_[depth_ - 1].pushed : pushed_base_;
  if (depth_ != 0) {
    const bool was_between = std::exchange(frames_[depth_ - 1].between_nodes, after_node);
    if (was_between && after_node && numbered_ - number_of_frame(pushed) < kLong) return;
  }
  if (pushed != 0) device_->pop(0);
  pushed = frame_id(recording_->session(), buffer_->key(), numbered_);
  device_->push(pushed);
}

bool ThreadState::grow() noexcept {
  const std::uint32_t capacity = capacity_ == 0 ? 64 : capacity_ * 2;
  std::unique_ptr<Frame[]> frames(new (std::nothrow) Frame[capacity]);
  if (frames == nullptr) return false;
  if (depth_ != 0) std::memcpy(frames.get(), frames_.get(), depth_ * sizeof(Frame));
  frames_ = std::move(frames);
  capacity_ = capacity;
  return true;
}

void ThreadState::leave(Place place, std::uint64_t sequence, bool thrown) noexcept {
  if (place.depth == 0 || depth_ < place.depth || frames_[place.depth - 1].window != place.window)
    return;
  const std::uint32_t window = recording_->window();
  const bool is_node = frames_[place.depth - 1].end == RecordKind::kNodeEnd;
  while (depth_ >= place.depth) {
    // What is still open above the frame that is left was never closed by its own hook: something
    // threw.
    const bool abandoned = depth_ > place.depth;
    const Frame& frame = frames_[--depth_];
    if (marks_ != nullptr) [[unlikely]]
      end_mark(frame, sequence);
    if (frame.pushed != 0) [[unlikely]]
      device_->pop(innermost_pushed());
    if (!frame.recorded) continue;
    if (frame.window != window) {
      buffer_->forget_end();
      continue;
    }
    const std::uint8_t flags = thrown || abandoned ? kThrown : 0;
    buffer_->end({clock_ticks(), 0, sequence, 0, frame.end, flags, 0});
    ++numbered_;
  }
  if (device_ == nullptr) [[likely]]
    return;
  if (!recording_->is_over()) {
    tell_outside(is_node);
  } else {
    end_session();
  }
}

// ---- Marks ----

void ThreadState::begin_mark(Frame& frame, std::uint32_t id, std::uint64_t value,
                             std::uint8_t flags, std::uint64_t sequence) noexcept {
  const std::uint32_t base = run_base();
  switch (frame.end) {
    case RecordKind::kScopeEnd:
      live_->run.close(base);
      if (LiveCalls* calls = own_calls()) {
        const auto [around, in_node] = enclosing_call();
        frame.live = calls->open(sequence, frame.layer, around, in_node);
      }
      marks_->begin_layer(frame.layer, inside_node() ? Phase::kRecompute : Phase::kForward,
                          frame_id(recording_->session(), buffer_->key(), numbered_ + 1));
      break;
    case RecordKind::kRegionEnd:
      live_->run.close(base);
      marks_->begin_region(NameId{id}, flags < kPhaseCount ? Phase{flags} : Phase::kOther);
      break;
    default:
      frame.live = sequence;
      begin_node_mark(value, flags, base);
      break;
  }
  frame.run_depth = live_->run.depth();
}

// Opens the backward of the layer whose call made the node, and of those around it.
void ThreadState::begin_node_mark(std::uint64_t value, std::uint8_t flags,
                                  std::uint32_t base) noexcept {
  if ((flags & kEngineRoot) != 0) return live_->run.close(base);
  if ((flags & kAccumulates) != 0) {
    std::array<LayerId, LayerChain::kMost> ancestors;
    const Definitions& definitions = recording_->definitions();
    const std::size_t count = definitions.try_ancestors(definitions.try_owner_of(value), ancestors);
    if (count != 0) return live_->run.go_on_in_layer({ancestors.data(), count}, base);
    return live_->run.close(base);
  }
  const NodeRef node = unpack_node(value);
  const LiveCalls* calls = value != kUnknownNode ? calls_of(node.thread) : nullptr;
  LayerChain chain;
  if (calls != nullptr && calls->find(node.sequence, chain)) return live_->run.go_on(chain, base);
  live_->run.close(base);
}

void ThreadState::end_mark(const Frame& frame, std::uint64_t sequence) noexcept {
  live_->run.close(frame.run_depth);
  if (frame.end == RecordKind::kNodeEnd) {
    const bool made_nodes = sequence > frame.live;
    const LayerId owner = live_->run.depth() > run_base() ? live_->run.top() : kNoLayer;
    // Without an owner it matters only where it ran inside a call, whose they are not.
    LiveCalls* calls = owner != kNoLayer && made_nodes ? own_calls() : live_->own;
    if (made_nodes && calls != nullptr) calls->add_node(frame.live, sequence, owner);
    return;  // its layer's marks end with the run
  }
  if (frame.live != 0) live_->own->close(frame.live, sequence);
  marks_->end();
}

void ThreadState::end_backward_run() noexcept {
  if (live_ != nullptr) live_->run.close(run_base());
}

bool ThreadState::inside_node() const noexcept {
  for (std::uint32_t i = depth_; i != 0; --i) {
    if (frames_[i - 1].end == RecordKind::kNodeEnd) return true;
  }
  return false;
}

// The call around what begins now, and whether a node runs between the two.
std::pair<std::uint64_t, bool> ThreadState::enclosing_call() const noexcept {
  bool in_node = false;
  for (std::uint32_t i = depth_; i != 0; --i) {
    const Frame& frame = frames_[i - 1];
    if (frame.end == RecordKind::kScopeEnd) return {frame.live, in_node};
    if (frame.end == RecordKind::kNodeEnd) in_node = true;
  }
  return {0, in_node};
}

LiveCalls* ThreadState::own_calls() noexcept {
  try {
    if (live_->own == nullptr) live_->own = recording_->live_calls(buffer_->key(), /*make=*/true);
  } catch (...) {  // no memory: its backward has no marks
  }
  return live_->own;
}

const LiveCalls* ThreadState::calls_of(std::uint64_t thread_key) noexcept {
  if (live_->other == nullptr || live_->other_key != thread_key) {
    live_->other = recording_->live_calls(thread_key, /*make=*/false);
    live_->other_key = thread_key;
  }
  return live_->other;
}

// The operators that another window left open will not be ended in this one.
void ThreadState::forget_ops() noexcept {
  op_window_ = recording_->window();
  for (std::uint32_t i = std::min(op_depth_, kMaxOpDepth); i != 0; --i) {
    if (op_ends_[i - 1] == OpEnd::kOp) buffer_->forget_end();
  }
  op_depth_ = 0;
  op_frame_depth_ = 0;
  composite_depth_ = 0;
}

// False beyond any depth that operators nest to: then the operator is not recorded.
bool ThreadState::push_op(OpEnd end) noexcept {
  if (op_window_ != recording_->window()) [[unlikely]]
    forget_ops();
  const std::uint32_t depth = op_depth_++;
  if (depth >= kMaxOpDepth) [[unlikely]]
    return false;
  op_ends_[depth] = end;
  return true;
}

void ThreadState::enter_op(NameId name, std::uint8_t flags) noexcept {
  forget_composite();
  const bool composite = (flags & kOpComposite) != 0;
  if (!push_op(composite ? OpEnd::kComposite : OpEnd::kOp)) [[unlikely]] {
    recording_->count_lost(2);
  } else if (composite) {
    composite_depth_ = op_depth_;
    composite_name_ = name;
    composite_ticks_ = clock_ticks();
  } else if (!buffer_->begin({clock_ticks(), 0, 0, index(name), RecordKind::kOpBegin, flags,
                              static_cast<std::uint16_t>(op_window_)})) [[unlikely]] {
    op_ends_[op_depth_ - 1] = OpEnd::kNothing;
  }
}

// False where there is no room: then it is lost.
bool ThreadState::push_op_frame() noexcept {
  const bool pushed = push_op(OpEnd::kFrame);
  if (pushed && op_frame_depth_ < kMaxOpFrames) [[likely]]
    return true;
  recording_->count_lost(2);
  if (pushed) op_ends_[op_depth_ - 1] = OpEnd::kNothing;
  return false;
}

void ThreadState::enter_op_as_node(NameId name, std::uint64_t value, std::uint8_t flags,
                                   std::uint64_t sequence) noexcept {
  if (push_op_frame()) op_frames_[op_frame_depth_++] = enter_node(name, value, flags, sequence);
}

void ThreadState::enter_op_as_region(NameId name, std::uint8_t phase,
                                     std::uint64_t sequence) noexcept {
  if (push_op_frame()) op_frames_[op_frame_depth_++] = enter_region(name, phase, sequence);
}

void ThreadState::count(const OpAmounts& amounts, std::uint64_t ticks) noexcept {
  for_each_record(amounts, ticks, [this](const Record& record) { buffer_->mark(record); });
}

void ThreadState::leave_op(std::uint64_t (*sequence)(), const OpAmounts* amounts) noexcept {
  if (op_depth_ == 0 || op_window_ != recording_->window()) [[unlikely]]
    return;
  --op_depth_;
  if (op_depth_ >= kMaxOpDepth) [[unlikely]]
    return;
  switch (op_ends_[op_depth_]) {
    [[likely]] case OpEnd::kOp: {
      const std::uint64_t ticks = clock_ticks();
      if (amounts != nullptr) [[unlikely]]
        count(*amounts, ticks);
      buffer_->end({ticks, 0, 0, 0, RecordKind::kOpEnd, 0, 0});
      break;
    }
    case OpEnd::kFrame: {
      const Place frame = op_frames_[--op_frame_depth_];
      if (frame.depth != 0) leave(frame, sequence(), false);
      break;
    }
    case OpEnd::kComposite:
      composite_depth_ = 0;
      if (buffer_->begin({composite_ticks_, 0, 0, index(composite_name_), RecordKind::kOpBegin,
                          kOpComposite, static_cast<std::uint16_t>(op_window_)})) {
        const std::uint64_t ticks = clock_ticks();
        if (amounts != nullptr) count(*amounts, ticks);
        buffer_->end({ticks, 0, 0, 0, RecordKind::kOpEnd, 0, 0});
      }
      break;
    case OpEnd::kNothing:
      if (amounts != nullptr) count(*amounts);
      break;
  }
}

namespace recorder {
namespace detail {

constinit std::atomic<Recording*> current{nullptr};
constinit thread_local ThreadState* state __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

// Guards the hand-over of the session to threads that meet it for the first time.
std::mutex& hand_over() {
  static auto* mutex = new std::mutex;  // never destroyed: threads may outlive main
  return *mutex;
}
std::shared_ptr<Recording>& published() {
  static auto* recording = new std::shared_ptr<Recording>;
  return *recording;
}

// Retires the thread's buffer when the thread ends. Hooks that run later still (other thread-local
// destructors) record nothing.
struct ThreadEnd {
  bool over = false;
  ~ThreadEnd() {
    over = true;
    delete std::exchange(state, nullptr);
  }
};
thread_local ThreadEnd thread_end;

}  // namespace

ThreadState* attach() noexcept {
  if (current.load(std::memory_order_relaxed) == nullptr || thread_end.over) return nullptr;
  try {
    std::shared_ptr<Recording> recording;
    {
      const std::lock_guard lock(hand_over());
      recording = published();
    }
    if (recording == nullptr) return nullptr;
    auto fresh = std::make_unique<ThreadState>(std::move(recording));
    delete std::exchange(state, fresh.release());
    return state;
  } catch (...) {  // no memory for the thread's state; nothing of it may reach the user's program
    return nullptr;
  }
}

}  // namespace detail

void publish(std::shared_ptr<Recording> recording) {
  const std::lock_guard lock(detail::hand_over());
  detail::published() = std::move(recording);
  detail::current.store(detail::published().get(), std::memory_order_release);
}

void withdraw() noexcept {
  set_recording(false);
  const std::lock_guard lock(detail::hand_over());
  if (detail::published() != nullptr) detail::published()->end();
  detail::current.store(nullptr, std::memory_order_release);
  detail::published().reset();
}

void set_recording(bool on) noexcept {
  layertrace::detail::recording.store(on ? 1 : 0, std::memory_order_relaxed);
}

Scratch::Scratch()
    : recording_(std::make_shared<Recording>(
          8, +[]() -> std::uint64_t { return 0; })),
      thread_(std::make_unique<ThreadState>(recording_)),
      outer_(std::exchange(detail::state, thread_.get())) {
  // Not published: another thread that asks finds no session.
  detail::current.store(recording_.get(), std::memory_order_release);
}

Scratch::~Scratch() {
  detail::current.store(nullptr, std::memory_order_release);
  detail::state = outer_;
}

void forget_after_fork() noexcept {
  // The parent's other threads are gone, whatever they held is in no known state, and its records
  // are the parent's to write: nothing is destroyed here, only forgotten. The mutex is made anew,
  // since its owner may have vanished.
  std::construct_at(&detail::hand_over());
  std::construct_at(&detail::published());
  set_recording(false);
  detail::current.store(nullptr, std::memory_order_release);
  detail::state = nullptr;
}

}  // namespace recorder
}  // namespace layertrace
