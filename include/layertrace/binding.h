// For bindings of other languages, whose modules are not a torch::nn::Module: how such a language
// shows its modules to a session, and how its calls enter and leave scopes. Programs in C++ need
// none of this.
//
//   auto session = layertrace::binding::start(source, {{"", model}}, options);
//   …
//   // where the language calls a module, while recording:
//   const auto found = layertrace::binding::find(module);   // remember it: this is the slow part
//   const auto entry = layertrace::binding::enter(found.layer, module);
//   bool thrown = call(module);
//   layertrace::binding::leave(entry, thrown);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

namespace layertrace::binding {

// A module is known by its address for as long as it lives.
using Module = const void*;

// A language's modules, as layertrace looks at them: when a session starts or stops, when a module
// is met for the first time, and when one gets a parameter. All functions are called on the thread
// that does so, and may throw; the session then goes on without what they would have said.
class LAYERTRACE_API ModuleSource {
 public:
  struct Child {
    std::string name;
    Module module;
  };
  // A parameter or a buffer: the address of its c10::TensorImpl.
  struct OwnTensor {
    std::string name;
    void* tensor;
    bool is_buffer = false;
  };

  ModuleSource() = default;
  virtual ~ModuleSource();
  ModuleSource(const ModuleSource&) = delete;  // sessions hold its address
  ModuleSource& operator=(const ModuleSource&) = delete;

  // Of a module that is folded into another: that one's name is the inner's.
  virtual std::string type_name(Module module) = 0;
  virtual std::vector<Child> children(Module module) = 0;
  // Its own, without its children's.
  virtual std::vector<OwnTensor> tensors(Module module) = 0;
  // Of a convolution or a pooling: "3 × 3".
  virtual std::string kernel_size(Module /*module*/) { return {}; }

  // What tells this module from another one that comes to stand at its address later. It must not
  // keep the module alive.
  virtual std::shared_ptr<const void> remember(Module module) = 0;
  virtual bool is_same(Module module, const void* remembered) = 0;

  // It calls copies of its children in their place (DataParallel).
  virtual bool is_replicating(Module /*module*/) { return false; }
  // A copy for one call (DataParallel makes them), which stands for a registered module.
  virtual bool is_replica(Module /*module*/) { return false; }
  virtual bool is_replica_of(Module /*replica*/, Module /*module*/) { return false; }
  // The child shows itself under this module's name, as if the module around it were not there.
  virtual bool is_folded(Module /*module*/, const Child& /*child*/) { return false; }
  // A module that a compiler has made, and no part of anyone's model: what it does is its caller's.
  virtual bool is_generated(Module /*module*/) { return false; }
  // A model that nobody named has been called, outside any other module: its name, or nothing if it
  // is to be seen as unregistered.
  virtual std::optional<std::string> name_model(Module /*module*/) { return std::nullopt; }
  // What PyTorch reports of optimizers and loaders, and programs of themselves (record_function),
  // is told by enter_reported(). Else a callback is registered with PyTorch for it, which makes
  // each autograd node slower.
  virtual bool tells_reported() { return false; }
  // What a reader of the result must know, one sentence each.
  virtual std::vector<std::string> notes() { return {}; }

  // Takes a lock that another thread may hold while it runs functions of this class. A language
  // with a lock of its own lets go of that while it waits.
  virtual void wait_for(std::mutex& mutex) { mutex.lock(); }
};

// The modules that a session knows from the start, each with a name. A single one may have an empty
// name; then its layers' paths have no prefix.
using Models = std::vector<std::pair<std::string, Module>>;

LAYERTRACE_API Result<Session> start(std::shared_ptr<ModuleSource> source, const Models& models,
                                     Options options = {});

inline constexpr std::uint32_t kNoLayer = 0xffffffffU;

// Whether scopes are recorded now: one relaxed load.
inline bool recording() noexcept {
  return layertrace::detail::recording.load(std::memory_order_relaxed) != 0;
}

// The layer of the calling thread's innermost module call, kNoLayer outside any.
LAYERTRACE_API std::uint32_t current_layer() noexcept;

// Which layer is this module, seen from the calling thread's innermost call? The answer holds for
// the same session, module and caller, unless it is only for now. A folded module takes no scope.
struct Found {
  std::uint32_t layer = kNoLayer;
  bool folded = false;
  bool for_now = false;
};
LAYERTRACE_API Found find(Module module) noexcept;

// The module has got another parameter, or another in the place of one.
LAYERTRACE_API void add_parameter(Module module, const ModuleSource::OwnTensor& tensor) noexcept;

// Operators are counted now on the calling thread's behalf, and modules' shapes are wanted.
LAYERTRACE_API bool counting() noexcept;
// What tells calls of an outermost module apart: begun with its layer, then mixed with each tensor
// (a c10::TensorImpl) that goes in. Never 0.
LAYERTRACE_API std::uint64_t begin_key(std::uint32_t layer, bool is_training) noexcept;
LAYERTRACE_API std::uint64_t mix_shape(std::uint64_t key, const void* tensor) noexcept;
// Appends "float32[2, 64, 512]" for a c10::TensorImpl.
LAYERTRACE_API void append_shape(std::string& text, const void* tensor);
// Whether meet_call() is to be told of calls.
LAYERTRACE_API bool wants_calls() noexcept;
// An outermost module is about to be entered. `key` tells calls apart that may compute different
// amounts (a hash of the inputs' shapes): one that is met for the first time is counted.
LAYERTRACE_API void meet_call(std::uint64_t key) noexcept;
// Of the innermost scope, after it was entered (what goes in) or before it is left (what comes
// out): "float32[2, 64, 512]", several with commas between.
LAYERTRACE_API void note_shapes(std::string_view shapes, bool is_output) noexcept;

// The user says what the call of a module computes, in place of what its operators do: between
// these two they count for nothing. Inside the module's scope; true where it is to be ended, with
// what the call has computed (nothing: it is uncounted) or, where it threw, without.
LAYERTRACE_API bool begin_replacing() noexcept;
LAYERTRACE_API void end_replacing(std::string_view type,
                                  std::optional<std::uint64_t> flops) noexcept;
LAYERTRACE_API void end_replacing() noexcept;

// What an optimizer's state takes, in bytes: the last that is said of each counts.
LAYERTRACE_API void tell_optimizer(const void* optimizer, std::uint64_t state_bytes) noexcept;

LAYERTRACE_API detail::Entry enter(std::uint32_t layer, Module module) noexcept;
// A region under the name by which it is reported ("Optimizer.step#Adam.step"). Left as others are.
LAYERTRACE_API detail::Entry enter_reported(std::string_view name) noexcept;
LAYERTRACE_API void leave(detail::Entry entry, bool thrown) noexcept;

}  // namespace layertrace::binding
