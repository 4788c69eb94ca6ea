#include <layertrace/benchmark.h>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <sys/utsname.h>
#include <torch/nn/module.h>
#include <torch/version.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <set>
#include <system_error>

#include "base/host_info.h"
#include "base/simulation.h"
#include "torch/libtorch_modules.h"

namespace layertrace {
namespace {

using Devices = std::set<c10::DeviceIndex>;
using torch::nn::Module;

// Of CUDA, that hold something of the model.
Devices devices_of(const Module& model) {
  Devices devices;
  const auto look = [&](const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (tensor.defined() && tensor.is_cuda()) devices.insert(tensor.device().index());
    }
  };
  look(model.parameters());
  look(model.buffers());
  return devices;
}

void wait_for(const Devices& devices) {
  const auto* cuda = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
  for (const c10::DeviceIndex device : devices) cuda->synchronizeDevice(device);
}

// ---- what is as it was afterwards ----

class KeptModes {
 public:
  KeptModes(Module& model, bool eval) {
    if (!eval) return;
    modes_.emplace_back(&model, model.is_training());
    // Without the model itself, which may live on the stack.
    for (const auto& module : model.modules(/*include_self=*/false))
      modes_.emplace_back(module.get(), module->is_training());
    if (std::ranges::any_of(modes_, &std::pair<Module*, bool>::second)) {
      model.eval();
    } else {
      modes_.clear();
    }
  }
  ~KeptModes() {
    // Parents come before children, which train() changes too.
    for (const auto& [module, is_training] : modes_) module->train(is_training);
  }
  KeptModes(const KeptModes&) = delete;  // it would restore twice
  KeptModes& operator=(const KeptModes&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> modes_;
};

class KeptNumbers {
 public:
  explicit KeptNumbers(const Devices& devices) {
    keep(at::globalContext().defaultGenerator(c10::kCPU));
    for (const c10::DeviceIndex device : devices)
      keep(at::globalContext().defaultGenerator({c10::kCUDA, device}));
  }
  ~KeptNumbers() {
    for (auto& [generator, state] : states_) {
      const std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    }
  }
  KeptNumbers(const KeptNumbers&) = delete;  // it would restore twice
  KeptNumbers& operator=(const KeptNumbers&) = delete;

 private:
  void keep(at::Generator generator) {
    const std::lock_guard lock(generator.mutex());
    at::Tensor state = generator.get_state();
    states_.emplace_back(std::move(generator), std::move(state));
  }
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

class KeptThreads {
 public:
  explicit KeptThreads(int wanted) : before_(at::get_num_threads()), wanted_(wanted) {
    if (wanted_ > 0) at::set_num_threads(wanted_);
  }
  ~KeptThreads() {
    if (wanted_ > 0) at::set_num_threads(before_);
  }
  KeptThreads(const KeptThreads&) = delete;  // it would restore twice
  KeptThreads& operator=(const KeptThreads&) = delete;

 private:
  int before_;
  int wanted_;
};

// All of these, while a model is timed.
class Kept {
 public:
  Kept(Module& model, const Devices& devices, const BenchmarkOptions& options)
      : modes_(model, options.eval), numbers_(devices), threads_(options.intra_op_threads) {
    if (options.inference_mode) inference_.emplace();
  }

 private:
  KeptModes modes_;
  KeptNumbers numbers_;
  KeptThreads threads_;
  std::optional<c10::InferenceMode> inference_;
};

std::optional<Error> set_inter_op_threads(int wanted) {
  if (wanted <= 0 || std::cmp_equal(wanted, at::get_num_interop_threads())) return std::nullopt;
  try {
    at::set_num_interop_threads(wanted);
  } catch (const c10::Error&) {
    return Error{"cannot set " + std::to_string(wanted) + " threads between operators",
                 "PyTorch has begun with " + std::to_string(at::get_num_interop_threads()),
                 "Set them once, where the program begins"};
  }
  return std::nullopt;
}

std::optional<Error> refuse(const Module* model, const BenchmarkOptions& options) {
  const char* const tried = "cannot time a model";
  if (model == nullptr) return Error{tried, "the model is null", "Give it a module"};
  if (options.drop_first >= options.iterations) {
    return Error{tried,
                 "of " + std::to_string(options.iterations) + " iterations the first " +
                     std::to_string(options.drop_first) + " would be dropped",
                 "Let iterations be more than drop_first"};
  }
  if (detail::recording.load(std::memory_order_relaxed) != 0) {
    return Error{tried, "a session is active, whose scopes would be timed, too",
                 "Stop the session first"};
  }
  return set_inter_op_threads(options.inter_op_threads);
}

// ---- timing ----

// Tells how far it is, some times in a second.
class Progress {
 public:
  Progress(const BenchmarkOptions& options, std::uint64_t all)
      : tell_(options.progress), all_(all) {}

  void operator()() {
    ++done_;
    if (!tell_) return;
    const auto now = Clock::now();
    if (now < next_ && done_ != all_) return;
    constexpr std::chrono::milliseconds kBetween{100};
    next_ = now + kBetween;
    tell_(done_, all_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::function<void(std::uint64_t, std::uint64_t)>& tell_;
  std::uint64_t done_ = 0;
  std::uint64_t all_;
  Clock::time_point next_;
};

template <typename Call, typename Between>
std::vector<std::uint64_t> time_calls(const BenchmarkOptions& options, const Call& call,
                                      Between& between) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::uint64_t> ns(options.iterations);
  for (std::uint64_t& each : ns) {
    const auto start = Clock::now();
    call();
    const auto end = Clock::now();
    each = static_cast<std::uint64_t>(std::chrono::nanoseconds(end - start).count());
    between();
  }
  ns.erase(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(options.drop_first));
  return ns;
}

template <typename Between>
std::vector<std::uint64_t> time_calls(const BenchmarkOptions& options, const Devices& devices,
                                      const std::function<void()>& call, Between& between) {
  if (devices.empty()) return time_calls(options, call, between);
  wait_for(devices);
  const auto call_and_wait = [&] {
    call();
    wait_for(devices);
  };
  return time_calls(options, call_and_wait, between);
}

TimingEnvironment environment_of(const Devices& devices, const std::string& run_name) {
  TimingEnvironment environment = timing_environment("cpu", "");
  if (!devices.empty()) {
    const std::string first = std::to_string(*devices.begin());
    environment = timing_environment("cuda:" + first, "CUDA device " + first);
  }
  environment.run_name = run_name;
  return environment;
}

// A folder that goes with what is in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / "layertrace.XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr) {
      return Error{"cannot make a folder for the recording of modules",
                   error ? error.message() : std::strerror(errno),
                   "Let TMPDIR name one that can be written"};
    }
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  TemporaryFolder(const TemporaryFolder&) = delete;  // it would be removed twice
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// The pass with scopes.
Result<void> time_modules(Benchmark& timed, Module& model, const std::function<void()>& call,
                          const Devices& devices, const BenchmarkOptions& options,
                          Progress& progress) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  const std::string trace = folder->file("modules.pftrace");
  auto session = Session::start(
      model, {.output = trace,
              .schedule = {.warmup = options.drop_first, .record = timed.total_ns.size()},
              .ops = false,
              .count = Counting::kOff,
              .timing = options.timing,
              .nvtx = false});
  if (!session) return session.error();
  const auto end_iteration = [&] {
    session->step();
    progress();
  };
  timed.scoped_ns = time_calls(options, devices, call, end_iteration);
  const auto profile = session->stop();
  if (!profile) return profile.error();
  auto modules = timed_modules(trace);
  if (!modules) return modules.error();
  timed.modules = std::move(*modules);
  if (!devices.empty() && !profile->run.device.empty()) timed.environment.gpu = profile->run.device;
  timed.notes = recording_notes(*profile, !devices.empty());
  return {};
}

bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         std::strstr(error.what(), "can't allocate memory") != nullptr;
}

}  // namespace

TimingEnvironment timing_environment(const std::string& device, const std::string& gpu) {
  RunInfo run;
  describe_host(run);
  utsname system{};
  uname(&system);
  const bool is_simulated = device.starts_with("cuda") && *simulation().device != '\0';
  return {.device = device,
          .gpu = is_simulated ? simulation().device : gpu,
          .simulated = is_simulated,
          .intra_op_threads = static_cast<std::uint64_t>(at::get_num_threads()),
          .inter_op_threads = static_cast<std::uint64_t>(at::get_num_interop_threads()),
          .host_name = run.host,
          .os = system.sysname,
          .os_release = system.release,
          .cpu = run.cpu,
          .cpu_count = run.cpu_count,
          .memory_bytes = run.memory_bytes,
          .torch_version = TORCH_VERSION,
          .layertrace_version = kVersion,
          .command = run.command,
          .commit = run.commit,
          .created = run.created};
}

namespace detail {

Result<Benchmark> run_benchmark(Module* model, const std::function<void()>& call,
                                const BenchmarkOptions& options) {
  if (auto error = refuse(model, options)) return *error;
  const Devices devices = devices_of(*model);
  const Kept kept(*model, devices, options);
  Benchmark timed{.model = type_name(*model),
                  .iterations = options.iterations,
                  .drop_first = options.drop_first,
                  .aggregate = options.aggregate};
  timed.environment = environment_of(devices, options.name);
  Progress progress(options, options.iterations * (options.modules ? 2 : 1));
  timed.total_ns = time_calls(options, devices, call, progress);
  if (options.modules) {
    const auto done = time_modules(timed, *model, call, devices, options, progress);
    if (!done) return done.error();
  }
  return timed;
}

Result<Throughput> run_throughput(Module* model, const CallOf& call_of,
                                  const std::vector<std::uint64_t>& batch_sizes,
                                  const BenchmarkOptions& options) {
  if (auto error = refuse(model, options)) return *error;
  if (batch_sizes.empty() || std::ranges::find(batch_sizes, 0u) != batch_sizes.end()) {
    return Error{"cannot time batches", batch_sizes.empty() ? "no size is given" : "a size is 0",
                 "Give sizes of 1 or more"};
  }
  const Devices devices = devices_of(*model);
  const Kept kept(*model, devices, options);
  Throughput sweep{.model = type_name(*model),
                   .iterations = options.iterations,
                   .drop_first = options.drop_first};
  sweep.environment = environment_of(devices, options.name);
  Progress progress(options, options.iterations * batch_sizes.size());
  for (const std::uint64_t size : batch_sizes) {
    try {
      const std::function<void()> call = call_of(size);
      sweep.batches.push_back({size, time_calls(options, devices, call, progress)});
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      if (sweep.batches.empty()) {
        return Error{"cannot time batches of " + std::to_string(size),
                     "memory does not suffice for it, which is the first size",
                     "Begin with a smaller one"};
      }
      sweep.out_of_memory_at = size;
      break;
    }
  }
  return sweep;
}

at::Tensor batch_of(const at::Tensor& tensor, std::uint64_t batch_size) {
  const auto rows = at::arange(static_cast<std::int64_t>(batch_size),
                               at::TensorOptions().dtype(at::kLong).device(tensor.device()));
  return tensor.index_select(0, rows.remainder(tensor.size(0)));
}

}  // namespace detail
}  // namespace layertrace
