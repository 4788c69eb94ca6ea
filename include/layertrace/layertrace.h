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
//     layertrace::ModuleScope scope(this);        // or (this, x), to tell what goes in
//     ...
//
// This and benchmark.h are the public headers that name a Torch type, and they only declare it:
// including them costs no compile time.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/report.h>
#include <layertrace/result.h>
#include <layertrace/trace.h>

namespace at {
class Tensor;
}  // namespace at
namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace layertrace {

// Which steps are recorded: `skip` steps idle, then `warmup` steps with the hooks running but
// nothing kept (a trace shows what a GPU did in them, which counts for nothing), then `record`
// steps; the whole `repeat` times (0: until stop). While idle a scope costs one relaxed load.
// `record = 0` records every step from the first (after skip and warmup, once).
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

// When operators are counted: what they compute (FLOPs), move and allocate, and the shapes that
// modules are called with. Counting needs the operators' inputs and costs more than recording.
enum class Counting : std::uint8_t {
  kFirst,   // in the first recorded step, and in each whose model is called with other shapes;
            // what is like it is not counted again
  kAlways,  // in every recorded step
  kOff,
};

// "first", "always", "off". An unknown name is an error that lists those.
LAYERTRACE_API Result<Counting> parse_counting(std::string_view name);

// One argument of an operator's call, as a formula of the user's sees it.
struct FormulaArgument {
  std::string name;                               // in the operator's schema
  std::vector<std::vector<std::int64_t>> shapes;  // of a tensor; of a list of tensors, each one's
  std::vector<std::int64_t> integers;             // of a whole number, a bool, a list of these
  std::optional<double> number;                   // of any number
};

struct OperatorCall {
  std::string name;  // "mylib::attend"
  std::vector<FormulaArgument> arguments;

  // nullptr where the operator has none of this name.
  LAYERTRACE_API const FormulaArgument* find(std::string_view argument) const noexcept;
};

// How many FLOPs the call takes: two for each multiply-add. Nothing where that cannot be told: then
// the call is listed as uncounted. It runs on the threads that run operators, several at once.
using Formula = std::function<std::optional<std::uint64_t>(const OperatorCall&)>;

// From now on, in this process, calls of this operator ("mylib::attend", or with its overload) are
// counted by the formula. It takes the place of another for the same name, a built-in one too.
//
//   layertrace::add_formula("mylib::attend", [](const layertrace::OperatorCall& call) {
//     const auto& q = call.find("q")->shapes[0];
//     return std::optional<std::uint64_t>(4 * q[0] * q[1] * q[1] * q[2]);
//   });
LAYERTRACE_API Result<void> add_formula(const std::string& op, Formula formula);
// Those that were added alone; false where there is none.
LAYERTRACE_API bool remove_formula(const std::string& op);
// For tests of a formula: what such a call would be counted as, by the formula that was added or by
// a built-in one. Nothing where none is there, or where it cannot tell.
LAYERTRACE_API std::optional<std::uint64_t> count_call(const OperatorCall& call);

// The shapes of a call's tensors, in the order in which they stand.
using Shapes = std::vector<std::vector<std::int64_t>>;

// Likewise of a module's call, with what went in and came out. The shapes are empty where the
// module's scope does not tell them (see ModuleScope): take them by at(), since an exception leaves
// the call uncounted and goes no further.
using ModuleFormula = std::function<std::optional<std::uint64_t>(
    const torch::nn::Module& module, const Shapes& inputs, const Shapes& output)>;

namespace detail {

// A class of modules, by its holder's name or its own.
template <typename M>
struct ModuleClass {
  using Type = M;
};
template <typename M>
  requires requires { typename M::ContainedType; }
struct ModuleClass<M> {
  using Type = M::ContainedType;
};

struct ClassFormula {
  std::type_index type;
  bool (*is_of)(const torch::nn::Module& module);  // it, or a class derived from it
  ModuleFormula formula;
};

template <typename M, typename Function>
ClassFormula class_formula(Function function) {
  using Class = ModuleClass<M>::Type;
  return {typeid(Class),
          [](const torch::nn::Module& module) {
            return dynamic_cast<const Class*>(&module) != nullptr;
          },
          [function = std::move(function)](const torch::nn::Module& module, const Shapes& inputs,
                                           const Shapes& output) -> std::optional<std::uint64_t> {
            return function(dynamic_cast<const Class&>(module), inputs, output);
          }};
}

LAYERTRACE_API void add_formula(ClassFormula formula);
LAYERTRACE_API bool remove_formula(std::type_index type);

}  // namespace detail

// From now on, in this process, what the function says of a call of such a module, or of one of a
// class derived from it, takes the place of what was counted inside. For a module of several such
// classes it is its own class's, else the one that was added last.
//
//   layertrace::add_formula<Block>([](const BlockImpl& block, const layertrace::Shapes& inputs,
//                                     const layertrace::Shapes& output) {
//     return 2 * inputs.at(0).at(0) * block.width * output.at(0).at(1);
//   });
template <typename M, typename Function>
void add_formula(Function function) {
  detail::add_formula(detail::class_formula<M>(std::move(function)));
}
// False where there is none.
template <typename M>
bool remove_formula() {
  return detail::remove_formula(typeid(typename detail::ModuleClass<M>::Type));
}

// Formulas for one session: `{.formulas = layertrace::Formulas().add<Block>(…)}`. While it lasts
// they come before the process's.
class Formulas {
 public:
  Formulas& add(std::string op, Formula formula) {
    ops_.emplace_back(std::move(op), std::move(formula));
    return *this;
  }
  template <typename M, typename Function>
  Formulas& add(Function function) {
    classes_.push_back(detail::class_formula<M>(std::move(function)));
    return *this;
  }

 private:
  friend class SessionFormulas;
  std::vector<std::pair<std::string, Formula>> ops_;
  std::vector<detail::ClassFormula> classes_;
};

struct Options {
  // Where the trace goes. It grows as `<output>.part` and gets its name at stop. Empty: kept in an
  // unnamed temporary file until save() gives it a name.
  std::string output = {};
  Schedule schedule = {};
  // Record the dispatcher's operators. Without them: layers and autograd nodes only, the cheapest
  // mode.
  bool ops = true;
  Counting count = Counting::kFirst;
  // What operators and modules compute, as long as the session lasts.
  Formulas formulas = {};
  // The recording is of one call, to see what a model is: see summary(). Trees then show shapes and
  // sizes, and no times.
  bool summary = false;
  // That call is on the meta device, whose tensors take no memory: what little the host's allocator
  // tells meanwhile is left out. So it is where a model is there that summary() is given.
  bool meta = false;
  // What the device can do at most, for one that no table knows: JSON as in docs/roofline.md, or
  // the path of a file with it.
  std::string device_peaks = {};
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
  // What the run is called in reports, beside the program's name.
  std::string name = {};
  // The program's name; that of the executable unless given.
  std::string program = {};
  std::string python_version = {};  // of a program in Python
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

  // Keeps a figure of the user's with the run, in its profile and in its trace; one with the same
  // key takes the other's place. Also after stop(): the trace is added to where it is, and so is
  // what save() wrote, as long as that is as it was left. By its key alone, what the registry has
  // of it (add_metric() of report.h) is kept with it.
  Result<void> add_metric(const MetricValue& metric);
  Result<void> add_metric(const std::string& key, double value);

  // Writes the stopped session's trace to another place. The target appears whole or not at all.
  Result<void> save(const std::string& path) const;

  bool recording() const noexcept;

 private:
  friend class SessionStarter;
  explicit Session(std::shared_ptr<SessionState> state);
  std::shared_ptr<SessionState> state_;
};

namespace detail {

template <typename Model, typename... Inputs>
void call_model(Model& model, Inputs&&... inputs) {
  if constexpr (requires { model->forward(std::forward<Inputs>(inputs)...); }) {
    model->forward(std::forward<Inputs>(inputs)...);
  } else {
    model.forward(std::forward<Inputs>(inputs)...);
  }
}

template <typename Model>
Result<Profile> summarise(Model& model, const std::function<void()>& call) {
  auto session = Session::start(model, {.summary = true, .nvtx = false});
  if (!session) return session.error();
  if (call) {
    call();
    session->step();
  }
  return session->stop();
}

}  // namespace detail

// What a model is and computes, by one call of it: parameters, shapes and FLOPs by layer, without a
// training loop. Without inputs, the parameters alone.
//
//   auto summary = layertrace::summary(model, torch::randn({1, 3, 224, 224}));
//   if (summary) std::cout << layertrace::tree(*summary);
//
// The call is an ordinary one: put the model into eval mode and a torch::NoGradGuard around it
// where it should leave no trace in the model.
template <typename Model, typename... Inputs>
Result<Profile> summary(Model& model, Inputs&&... inputs) {
  if constexpr (sizeof...(inputs) == 0) {
    return detail::summarise(model, {});
  } else {
    return detail::summarise(model,
                             [&] { detail::call_model(model, std::forward<Inputs>(inputs)...); });
  }
}

namespace detail {

// Where the tensors of a call are: in tuples, ranges (a list of tensors, a map) and optional
// values, too. Other arguments are passed by.
using Tensors = std::vector<const at::Tensor*>;

template <typename Value>
struct TensorsIn {
  static constexpr bool kMayBe = false;
  static void find(const Value& /*value*/, Tensors& /*found*/) {}
};
template <>
struct TensorsIn<at::Tensor> {
  static constexpr bool kMayBe = true;
  static void find(const at::Tensor& value, Tensors& found) { found.push_back(&value); }
};
template <typename Value>
inline constexpr bool kMayHoldTensors = TensorsIn<std::remove_cvref_t<Value>>::kMayBe;
template <typename Value>
void find_tensors(const Value& value, Tensors& found) {
  TensorsIn<std::remove_cvref_t<Value>>::find(value, found);
}
template <typename Value>
struct TensorsIn<std::optional<Value>> {
  static constexpr bool kMayBe = kMayHoldTensors<Value>;
  static void find(const std::optional<Value>& value, Tensors& found) {
    if (value) find_tensors(*value, found);
  }
};
template <typename... Values>
struct TensorsIn<std::tuple<Values...>> {
  static constexpr bool kMayBe = (kMayHoldTensors<Values> || ...);
  static void find(const std::tuple<Values...>& values, Tensors& found) {
    std::apply([&](const auto&... each) { (find_tensors(each, found), ...); }, values);
  }
};
template <typename First, typename Second>
struct TensorsIn<std::pair<First, Second>> {
  static constexpr bool kMayBe = kMayHoldTensors<First> || kMayHoldTensors<Second>;
  static void find(const std::pair<First, Second>& values, Tensors& found) {
    find_tensors(values.first, found);
    find_tensors(values.second, found);
  }
};
// Of values that stay where they are: those that a range makes as it goes are gone at once.
template <std::ranges::range Range>
  requires std::is_lvalue_reference_v<std::ranges::range_reference_t<const Range>> &&
           (!std::same_as<std::ranges::range_value_t<const Range>, Range>)
struct TensorsIn<Range> {
  static constexpr bool kMayBe = kMayHoldTensors<std::ranges::range_value_t<const Range>>;
  static void find(const Range& values, Tensors& found) {
    if constexpr (kMayBe) {
      for (const auto& each : values) find_tensors(each, found);
    }
  }
};

// The values of a call, to be searched by whoever wants to know of its tensors: mostly nobody.
struct CallValues {
  void (*find)(const void* values, Tensors& found) = nullptr;
  const void* values = nullptr;

  template <typename... Values>
  static CallValues of(const std::tuple<Values...>& values) noexcept {
    return {[](const void* all, Tensors& found) {
              find_tensors(*static_cast<const std::tuple<Values...>*>(all), found);
            },
            &values};
  }
};

// What a card needs of a model beside itself.
struct CardCalls {
  std::function<Result<Profile>()> summarise;
  std::function<void()> call;  // none where there are no inputs
  Tensors inputs;
};
LAYERTRACE_API Result<ModelCard> make_card(torch::nn::Module* model, const CardOptions& options,
                                           const CardCalls& calls);

template <typename Model>
torch::nn::Module* address_of(Model& model) {
  if constexpr (std::is_convertible_v<Model*, torch::nn::Module*>) {
    return &model;
  } else if constexpr (requires { model.is_empty(); }) {
    return model.is_empty() ? nullptr : model.ptr().get();
  } else {
    return model.get();  // of a shared_ptr
  }
}

// Non-zero while a session records scopes.
LAYERTRACE_API extern std::atomic<std::uint32_t> recording;
// Non-zero while more is wanted of a call than its scope: operators are counted, or there are
// formulas of classes.
LAYERTRACE_API extern std::atomic<std::uint32_t> follows_calls;

// What a scope must know to be left; it goes in two registers.
struct Entry {
  std::uint64_t place = 0;  // on its thread's stack; 0 for one that is not recorded
  std::int64_t exceptions =
      0;  // in flight when it was entered; as wide as a register, see entry_at()
};
LAYERTRACE_API Entry enter_module(const torch::nn::Module* module, CallValues inputs) noexcept;
LAYERTRACE_API Entry enter_region(std::string_view name) noexcept;
LAYERTRACE_API void leave(Entry entry) noexcept;

// A call that is counted: what is told of it, and what takes the place of what is counted inside.
// To be ended inside its scope; nullptr where nothing is wanted of it.
class CountedCall;
LAYERTRACE_API CountedCall* begin_call(const torch::nn::Module* module, CallValues inputs) noexcept;
LAYERTRACE_API CountedCall* begin_call(const torch::nn::Module* module,
                                       std::uint64_t flops) noexcept;
LAYERTRACE_API void note_output(CountedCall& call, CallValues output) noexcept;
LAYERTRACE_API void end_call(CountedCall* call, Entry entry) noexcept;

}  // namespace detail

// The model that a card's metric is asked of; nullptr where it is no torch::nn::Module.
inline torch::nn::Module* module_of(const MetricInput& input) noexcept {
  return static_cast<torch::nn::Module*>(input.model);
}

// A model in a few figures (docs/card.md): its size, what a call of it computes and takes, how long
// that lasts, and what the user's metrics say.
//
//   auto card = layertrace::card(model, {.name = "small"}, torch::randn({1, 3, 32, 32}));
//   if (card) std::cout << layertrace::card_text(*card);
//
// It is called in eval mode, without gradients, `1 + warmup + iterations` times, and left in the
// mode in which it was. Without inputs there are the parameters alone. What a call throws passes
// through.
template <typename Model, typename... Inputs>
Result<ModelCard> card(Model& model, const CardOptions& options, const Inputs&... inputs) {
  detail::CardCalls calls;
  calls.summarise = [&] { return summary(model, inputs...); };
  if constexpr (sizeof...(inputs) != 0) {
    calls.call = [&] { detail::call_model(model, inputs...); };
    (detail::find_tensors(inputs, calls.inputs), ...);
  }
  return detail::make_card(detail::address_of(model), options, calls);
}
// The same for a call that is made otherwise: `forward()` calls the model.
template <typename Model, std::invocable Forward>
Result<ModelCard> card(Model& model, const CardOptions& options, const Forward& forward) {
  const std::function<void()> call = [&] { static_cast<void>(forward()); };
  return detail::make_card(detail::address_of(model), options,
                           {[&] { return detail::summarise(model, call); }, call, {}});
}

// Marks one call of a module, from here to the end of the block. An exception passes through
// untouched and marks the scope as left by it. With no session this is one relaxed load and a
// branch.
//
// Given the call's inputs, and its output on the way out, their shapes are known of the layer, and
// formulas of its class see them:
//
//   layertrace::ModuleScope scope(this, x, mask);
//   ...
//   return scope.output(norm(x));
//
// Tensors may be in lists, tuples, maps and optional values; other arguments are passed by.
class ModuleScope {
 public:
  explicit ModuleScope(const torch::nn::Module* module) noexcept {
    if (detail::recording.load(std::memory_order_relaxed) != 0) [[unlikely]]
      open(module, {});
  }
  template <typename... Inputs>
    requires(detail::kMayHoldTensors<Inputs> || ...)
  explicit ModuleScope(const torch::nn::Module* module, const Inputs&... inputs) noexcept {
    if (detail::recording.load(std::memory_order_relaxed) != 0) [[unlikely]]
      open(module, detail::CallValues::of(std::tie(inputs...)));
  }
  // Says what this call computes: it takes the place of what is counted of the operators inside.
  ModuleScope(const torch::nn::Module* module, std::uint64_t flops) noexcept {
    if (detail::recording.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      entry_ = detail::enter_module(module, {});
      if (entry_.place != 0) call_ = detail::begin_call(module, flops);
    }
  }
  ~ModuleScope() {
    if (call_ != nullptr) [[unlikely]]
      detail::end_call(call_, entry_);
    if (entry_.place != 0) [[unlikely]]
      detail::leave(entry_);
  }
  ModuleScope(const ModuleScope&) = delete;  // it stands for a stretch of one thread's stack
  ModuleScope& operator=(const ModuleScope&) = delete;

  // Gives what it is given: what the call gives back.
  template <typename Output>
  std::remove_cvref_t<Output> output(Output&& value) noexcept(
      std::is_nothrow_constructible_v<std::remove_cvref_t<Output>, Output>) {
    if (call_ != nullptr) [[unlikely]]
      detail::note_output(*call_, detail::CallValues::of(std::tie(std::as_const(value))));
    return std::forward<Output>(value);
  }

 private:
  void open(const torch::nn::Module* module, detail::CallValues inputs) noexcept {
    entry_ = detail::enter_module(module, inputs);
    const bool is_followed = detail::follows_calls.load(std::memory_order_relaxed) != 0;
    if (entry_.place != 0 && is_followed) [[unlikely]]
      call_ = detail::begin_call(module, inputs);
  }

  detail::Entry entry_;
  detail::CountedCall* call_ = nullptr;
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
