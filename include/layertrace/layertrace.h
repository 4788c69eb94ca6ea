// layertrace: which layer is a training step's time going to, forward and backward?
//
//   #include <layertrace/layertrace.h>
//
//   auto session = layertrace::Session::start(model, {.output = "run.pftrace"});
//   if (!session) std::cerr << session.error().message();
//   for (auto& batch : *loader) {
//     auto loss = loss_fn(model->forward(batch.data), batch.target);
//     loss.backward();
//     optimizer.step();
//     if (session) session->step();
//   }
//   if (!session) return;
//   auto profile = session->stop();
//   if (profile) std::cout << layertrace::tree(*profile);
//
// LibTorch's own layers are seen as they are. A module of one's own takes one line at the top of
// its forward:
//
//   torch::Tensor forward(torch::Tensor x) {
//     layertrace::ModuleScope scope(this);
//     ...
//
// This is the one public header that names a Torch type, and it only declares it: including it
// costs no compile time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/report.h>
#include <layertrace/result.h>
#include <layertrace/trace.h>

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace layertrace {

// Which steps are recorded: `skip` steps idle, then `warmup` steps with the hooks running but
// nothing kept, then `record` steps; the whole `repeat` times (0: until stop). While idle a scope
// costs one relaxed load. `record = 0` records every step from the first (after skip and warmup,
// once).
struct Schedule {
  std::uint64_t skip = 0;
  std::uint64_t warmup = 0;
  std::uint64_t record = 0;
  std::uint64_t repeat = 1;
};

// How a GPU's time is taken.
enum class Timing : std::uint8_t {
  kBoth,    // the next two, side by side
  kCupti,   // each kernel, copy and set, by CUPTI
  kEvents,  // each layer's time on its stream, by pairs of CUDA events: also where CUPTI is
            // forbidden
};

// "both", "cupti", "events". An unknown name is an error that lists those.
LAYERTRACE_API Result<Timing> parse_timing(std::string_view name);

struct Options {
  // Where the trace goes. It grows as `<output>.part` and gets its name at stop. Empty: kept in an
  // unnamed temporary file until save() gives it a name.
  std::string output = {};
  Schedule schedule = {};
  // Record the dispatcher's operators. Without them: layers and autograd nodes only, the cheapest
  // mode.
  bool ops = true;
  // Where a module of one's own has no ModuleScope, what it does between two of its layers is seen
  // outside any scope. With this it is given to the lowest module that holds both, and counted in
  // Health::inferred.
  bool infer = false;
  Timing timing = Timing::kBoth;
  // Show layers as NVTX ranges to a tool that listens (Nsight Systems). Without one it costs
  // nothing.
  bool nvtx = true;
  // An error, rather than a recording of less, where what the GPU does cannot be recorded as
  // `timing` says.
  bool require_gpu = false;
  // What the run is called in reports; the program's name unless given.
  std::string program = {};
  // The most memory that recording may take. When the writer falls behind, records are dropped and
  // counted; the program never waits.
  std::size_t memory_cap_bytes = std::size_t{64} << 20;
};

class SessionState;
class SessionStarter;

// One recording of a model. There is at most one active Session in a process; a second start() is
// an error and leaves the first unharmed. start, step, stop and save may be called from any thread,
// one at a time.
//
// A Session that is destroyed, or alive when the program exits, calls std::terminate or returns
// from main, stops itself and writes its trace. A forked child does not inherit it: there,
// recording is off and step() and stop() do nothing.
class LAYERTRACE_API Session {
 public:
  // Starts to record `model`: by reference (it may live on the stack), as a shared_ptr or as a
  // module holder. The model must outlive the session; modules added later are found when they are
  // first called.
  static Result<Session> start(torch::nn::Module& model, Options options = {});

  template <typename M>
  static Result<Session> start(const std::shared_ptr<M>& model, Options options = {}) {
    return start({{"", static_cast<torch::nn::Module*>(model.get())}}, std::move(options));
  }
  template <typename Holder>
    requires requires { typename Holder::ContainedType; }
  static Result<Session> start(const Holder& model, Options options = {}) {
    torch::nn::Module* module = model.is_empty() ? nullptr : model.ptr().get();
    return start({{"", module}}, std::move(options));
  }

  // Several models at once; each one's paths begin with its name.
  static Result<Session> start(
      const std::vector<std::pair<std::string, torch::nn::Module*>>& models, Options options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  Session(const Session&) = delete;  // a session is one recording; two owners could stop it twice
  Session& operator=(const Session&) = delete;
  ~Session();

  // Marks the end of a training step.
  void step() noexcept;

  // Ends the recording and gives the result. The trace gets its final name here. On failure to
  // write it (a full disk) the error says so, profile() still has the result, and save() can be
  // tried again elsewhere.
  Result<Profile> stop();

  // The result: of a stopped session the same that stop() gave; before that, of the steps so far
  // (while none has ended, of all there is).
  Result<Profile> profile() const;

  // Writes the stopped session's trace to another place. The target appears whole or not at all.
  Result<void> save(const std::string& path) const;

  bool recording() const noexcept;

 private:
  friend class SessionStarter;
  explicit Session(std::shared_ptr<SessionState> state);
  std::shared_ptr<SessionState> state_;
};

namespace detail {

// Non-zero while a session records scopes.
LAYERTRACE_API extern std::atomic<std::uint32_t> recording;

// What a scope must know to be left; it goes in two registers.
struct Entry {
  std::uint64_t place = 0;  // on its thread's stack; 0 for one that is not recorded
  std::int64_t exceptions =
      0;  // in flight when it was entered; as wide as a register, see entry_at()
};
LAYERTRACE_API Entry enter_module(const torch::nn::Module* module) noexcept;
LAYERTRACE_API Entry enter_region(std::string_view name) noexcept;
LAYERTRACE_API void leave(Entry entry) noexcept;

}  // namespace detail

// Marks one call of a module, from here to the end of the block. An exception passes through
// untouched and marks the scope as left by it. With no session this is one relaxed load and a
// branch.
class ModuleScope {
 public:
  explicit ModuleScope(const torch::nn::Module* module) noexcept {
    if (detail::recording.load(std::memory_order_relaxed) != 0) [[unlikely]]
      entry_ = detail::enter_module(module);
  }
  ~ModuleScope() {
    if (entry_.place != 0) [[unlikely]]
      detail::leave(entry_);
  }
  ModuleScope(const ModuleScope&) = delete;  // it stands for a stretch of one thread's stack
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  detail::Entry entry_;
};

// A region of one's own: `layertrace::Scope scope("augment");`. Outside any module, the names of
// phases ("data", "loss", "optimizer", "communication") put what runs inside into that phase.
class Scope {
 public:
  explicit Scope(std::string_view name) noexcept {
    if (detail::recording.load(std::memory_order_relaxed) != 0) [[unlikely]]
      entry_ = detail::enter_region(name);
  }
  ~Scope() {
    if (entry_.place != 0) [[unlikely]]
      detail::leave(entry_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  detail::Entry entry_;
};

}  // namespace layertrace
