#include "session/session_state.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <map>
#include <system_error>
#include <utility>

#include "attribute/metric_list.h"
#include "base/host_info.h"
#include "base/simulation.h"
#include "capture/recorder.h"
#include "perfetto/format.h"
#include "report/cards/registry.h"
#include "roofline/cpu_calibration.h"
#include "roofline/rates.h"
#include "session/cost.h"

namespace layertrace {
namespace {

// How the memory cap is shared out: half for records on their way, an eighth each for remembering
// forward calls and for what a full disk refuses; the rest is for the writer's and the profile's
// own needs.
std::size_t max_chunks(std::size_t cap) { return cap / 2 / sizeof(Chunk); }
std::size_t max_intervals(std::size_t cap) { return cap / 8 / sizeof(Intervals::Interval); }
std::size_t max_fold_bytes(std::size_t cap) { return cap / 8; }
std::size_t max_kept_bytes(std::size_t cap) { return cap / 8; }
constexpr std::size_t kSmallestCap = std::size_t{1} << 20;

// The writer sleeps as long as the busiest program could not fill the room for records meanwhile:
// a sleep that ends costs it more than some hundred records.
std::chrono::milliseconds writer_pause(std::size_t cap) {
  constexpr std::size_t kMostRecordsInMs = 20'000;
  const std::size_t room = max_chunks(cap) * Chunk::kCapacity;
  return std::chrono::milliseconds(std::clamp<std::size_t>(room / kMostRecordsInMs, 2, 48));
}

// Nothing that the writer does is urgent: when it wakes, it takes no core from a thread of the
// program that is running there.
void give_way() noexcept {
  constexpr sched_param kNoPriority{};
  if (sched_getscheduler(0) == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &kNoPriority);
}

struct Active {
  std::mutex mutex;
  std::weak_ptr<SessionState> session;
  const SessionState* newest = nullptr;  // the same, for comparison also when it is going
  std::atomic<std::terminate_handler> previous_terminate = nullptr;
};
Active& active() {
  static auto* instance = new Active;  // never destroyed: needed while the program exits
  return *instance;
}

[[noreturn]] void on_terminate() {
  SessionState::stop_active();
  if (const std::terminate_handler previous = active().previous_terminate.load()) previous();
  std::abort();
}

std::uint64_t thread_cpu_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// The program's signals are for its own threads: one that it waits for, blocked everywhere, must
// not end it through ours. While this lives, threads are started that take none.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;  // what it restores is one thread's
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

// Once in a process for each number of threads: it takes some tens of milliseconds.
DeviceInfo measured_cpu(int threads) {
  static auto& mutex = *new std::mutex;  // never destroyed: a session may end with the program
  static auto& known = *new std::map<int, DeviceInfo>;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(threads); found != known.end()) return found->second;
  const BlockedSignals blocked;
  const auto measured = roofline::calibrate_cpu(threads);
  if (!measured) return {};
  return known[threads] = roofline::device_info(measured->peaks);
}

Error already_active(const std::string& output) {
  return {"cannot start a session",
          "one is already active" + (output.empty() ? "" : " (it writes " + output + ")"),
          "Stop it before you start another"};
}

}  // namespace

Result<std::shared_ptr<SessionState>> SessionState::start(
    Options options, std::unique_ptr<CaptureHooks> hooks,
    const std::function<void(Recording&)>& define, const FindDevice& find_device) {
  if (options.memory_cap_bytes < kSmallestCap) {
    return Error{"cannot start a session", "memory_cap_bytes is below 1 MiB",
                 "Give it at least 1 MiB"};
  }
  Active& current = active();
  std::shared_ptr<SessionState> other;  // let go of after the lock: its end would take it, too
  const std::lock_guard lock(current.mutex);
  other = current.session.lock();
  if (other != nullptr && !other->stopped_) {
    return already_active(other->options_.output);
  }
  DeviceInfo given_device;
  if (!options.device_peaks.empty()) {
    const auto peaks = roofline::read_device_peaks(options.device_peaks);
    if (!peaks) return peaks.error();
    given_device = roofline::device_info(*peaks);
  }
  auto formulas = SessionFormulas::add(options.formulas);
  if (!formulas) return formulas.error();
  auto output = OutputFile::create(options.output, max_kept_bytes(options.memory_cap_bytes));
  if (!output) return output.error();

  std::shared_ptr<SessionState> session(
      new SessionState(std::move(options), std::move(hooks), std::move(*output)));
  session->given_device_ = std::move(given_device);
  session->formulas_ = std::move(*formulas);
  if (auto prepared = session->prepare(define, find_device); !prepared) {
    session->stopped_ = true;  // it never began
    session->output_->discard();
    return prepared.error();
  }

  static const bool kHandlersInstalled = [] {
    std::atexit([] { SessionState::stop_active(); });
    std::at_quick_exit([] { SessionState::stop_active(); });
    pthread_atfork(nullptr, nullptr, [] { SessionState::forget_active_after_fork(); });
    return true;
  }();
  static_cast<void>(kHandlersInstalled);
  if (const auto handler = std::get_terminate(); handler != &on_terminate) {
    current.previous_terminate = std::set_terminate(&on_terminate);
  }
  current.session = session;
  current.newest = session.get();
  recorder::publish(session->recording_);
  recorder::set_recording(false);  // who waits for a session to come may have turned it on
  session->enter_mode(step_mode(session->options_.schedule, 0), 0);
  if (session->mode_ == StepMode::kRecord) session->hooks_->begin_step();
  return session;
}

Result<void> SessionState::prepare(const std::function<void(Recording&)>& define,
                                   const FindDevice& find_device) {
  try {
    if (auto used = use_device(find_device); !used) return used;
    define(*recording_);
    hooks_->set_counting(options_.count);
    scope_cost_ns_ = measure_scope_cost();
    op_cost_ns_ = options_.ops ? hooks_->measure_op_cost() : 0;
  } catch (const std::exception& error) {
    return Error{"cannot start a session", error.what(), ""};
  }
  return start_writer();
}

// Without it the host is recorded all the same, unless the user would rather know at once.
Result<void> SessionState::use_device(const FindDevice& find_device) {
  if (!find_device) return {};
  auto parts = find_device({.timing = options_.timing,
                            .nvtx = options_.nvtx,
                            .require_gpu = options_.require_gpu,
                            .definitions = &recording_->definitions()});
  if (!parts) return parts.error();
  device_notes_ = std::move(parts->notes);
  recording_->use(std::move(parts->marks));
  device_ = std::move(parts->capture);
  if (device_ == nullptr) return {};
  if (!device_->is_in_use() && !options_.require_gpu) {
    // A program that trains on the CPU, though there is a GPU: its operators are its activities.
    unused_device_ = std::move(device_);
    unused_device_->close();
    recording_->use(std::move(parts->ranges));
    return {};
  }
  if (device_->takes_scopes()) recording_->use(device_);
  pipeline_->use(*device_);
  return {};
}

// The device is told to record before the first scope can want it, and goes on a while after the
// last: what it was asked for takes its time.
void SessionState::turn_device(bool on) noexcept {
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_mutex_);
  device_idle_ns_ = on ? 0 : boottime_ns();
  (on ? device_since_ticks_ : device_idle_ticks_) = clock_ticks();
  if (!on || device_on_) return;
  if (auto enabled = device_->enable()) {
    device_on_ = true;
  } else {
    note_refusal(enabled.error());
  }
}

// Once, though it may come at each window; and from when on, if something was recorded before.
void SessionState::note_refusal(const Error& error) noexcept {
  if (std::exchange(device_refused_, true)) return;
  try {
    const std::string since =
        has_recorded_ ? "from step " + std::to_string(next_step_) + " on: " : std::string();
    device_notes_.push_back(since + error.message());
  } catch (const std::bad_alloc&) {  // the profile's figures tell, too
  }
}

// A device may be seconds behind its host: it is recorded until what it was asked for has come. But
// some never does: of what goes into a graph, say.
void SessionState::rest_device() noexcept {
  constexpr std::uint64_t kLeastNs = 250'000'000;
  constexpr std::uint64_t kMostNs = 10'000'000'000;
  if (device_ == nullptr) return;
  std::unique_lock lock(device_mutex_);
  const std::uint64_t since_ns = device_idle_ns_;
  if (!device_on_ || since_ns == 0) return;
  const std::uint64_t idle_ns = boottime_ns() - since_ns;
  if (idle_ns < kLeastNs) return;
  const std::uint64_t from_ticks = device_since_ticks_;
  const std::uint64_t until_ticks = device_idle_ticks_;
  lock.unlock();
  if (idle_ns < kMostNs) {
    const std::lock_guard pipeline_lock(pipeline_mutex_);
    if (pipeline_->awaits_kernels(from_ticks, until_ticks)) return;
  }
  lock.lock();
  if (!device_on_ || device_idle_ns_ != since_ns) return;  // it is wanted again
  device_->disable();
  device_on_ = false;
}

SessionState::SessionState(Options options, std::unique_ptr<CaptureHooks> hooks,
                           std::unique_ptr<OutputFile> output)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      output_(std::move(output)),
      recording_(
          std::make_shared<Recording>(max_chunks(options_.memory_cap_bytes), hooks_->thread_key())),
      pid_(getpid()) {
  RunInfo run;
  describe_host(run);
  if (!options_.program.empty()) run.program = options_.program;
  run.name = options_.name;
  run.python_version = options_.python_version;
  run.layertrace_version = kVersion;
  run.format_version = format::kVersion;
  run.torch_version = hooks_->framework_version();
  run.clock = clock_name();
  run.simulated = simulation().device;
  run.ops = options_.ops;
  run.summary = options_.summary;
  pipeline_ = std::make_unique<Pipeline>(recording_, *output_, run, TickScale::measure(),
                                         max_intervals(options_.memory_cap_bytes),
                                         max_fold_bytes(options_.memory_cap_bytes), options_.infer);
  if (const auto now = read_clocks()) pipeline_->clocks(*now);
  if (options_.meta) pipeline_->leave_out_memory();
}

SessionState::~SessionState() {
  if (!stopped_) static_cast<void>(stop());
}

bool SessionState::is_ours() const noexcept { return getpid() == pid_; }

// In a forked child the mutex may be locked for ever by a thread that is not there: each asks whose
// it is first.

bool SessionState::recording() const noexcept {
  if (!is_ours()) return false;
  const std::lock_guard lock(mutex_);
  return !stopped_ && mode_ == StepMode::kRecord;
}

void SessionState::step() noexcept {
  if (!is_ours()) return;
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  const std::uint64_t ended = next_step_++;
  if (mode_ == StepMode::kRecord) {
    if (ThreadState* thread = recorder::this_thread()) thread->mark(RecordKind::kStep, ended, 0);
  }
  enter_mode(step_mode(options_.schedule, next_step_), next_step_);
  if (mode_ == StepMode::kRecord) {
    hooks_->begin_step();
  } else {
    hooks_->end_steps();
  }
}

void SessionState::enter_mode(StepMode mode, std::uint64_t step) noexcept {
  if (mode == mode_) return;
  const StepMode before = std::exchange(mode_, mode);
  ThreadState* thread = recorder::this_thread();
  if (before == StepMode::kIdle) {
    turn_device(true);
    recording_->open_window();
    hooks_->enable(options_.ops);
  }
  if (before == StepMode::kRecord || mode == StepMode::kRecord) sample_edge();
  if (before == StepMode::kRecord && thread != nullptr) thread->mark(RecordKind::kWindow, step, 0);
  if (mode == StepMode::kRecord && thread != nullptr) thread->mark(RecordKind::kWindow, step, 1);
  has_recorded_ = has_recorded_ || mode == StepMode::kRecord;
  recorder::set_recording(mode != StepMode::kIdle);
  if (mode == StepMode::kIdle) {
    hooks_->disable();
    turn_device(false);
  }
}

// A recording may be shorter than the writer's pauses: what memory it begins and ends with is asked
// here, and handed on by the writer.
void SessionState::sample_edge() noexcept {
  if (device_ == nullptr) return;
  try {
    const std::vector<DeviceSample> samples = hooks_->sample_devices();
    const std::lock_guard lock(wake_mutex_);
    edge_samples_.insert(edge_samples_.end(), samples.begin(), samples.end());
  } catch (...) {  // no memory for them
  }
}

Result<void> SessionState::start_writer() {
  const BlockedSignals blocked;
  Result<void> result;
  try {
    writer_ = std::make_unique<std::thread>([this] { run_writer(); });
  } catch (const std::system_error& error) {
    result = Error{"cannot start a session", "no thread for its writer: " + error.code().message(),
                   "Raise the limit on threads, or start fewer of them"};
  }
  return result;
}

void SessionState::run_writer() noexcept {
  pthread_setname_np(pthread_self(), "layertrace");
  give_way();
  constexpr std::size_t kReadyChunks = 8;
  const auto pause = writer_pause(options_.memory_cap_bytes);
  if (device_ != nullptr) device_->begin_writer();
  std::unique_lock lock(wake_mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, pause, [this] { return stopping_; });
    const std::vector<DeviceSample> edges = std::exchange(edge_samples_, {});
    lock.unlock();
    try {
      const std::lock_guard pipeline_lock(pipeline_mutex_);
      pipeline_->take(edges);
      pipeline_->pump(clock_ticks());
      if (device_ != nullptr && layertrace::detail::recording.load(std::memory_order_relaxed) != 0)
        pipeline_->take(hooks_->sample_devices());
    } catch (...) {  // no memory, most likely: the program goes on, the recording does not
      recorder::set_recording(false);
      broken_.store(true);
      return;
    }
    recording_->pool().stock(kReadyChunks);
    rest_device();
    writer_cpu_ns_.store(thread_cpu_ns(), std::memory_order_relaxed);
    lock.lock();
  }
}

Health SessionState::closing_health() const {
  Health health;
  health.notes = device_notes_;
  if (unused_device_ != nullptr && unused_device_->is_in_use()) {
    health.notes.emplace_back(
        "the program began to use the GPU after the recording had begun, so what the GPU did is "
        "not "
        "recorded: move the model to the GPU before the session starts, or set require_gpu");
  }
  for (std::string& note : hooks_->notes()) health.notes.push_back(std::move(note));
  // Real nanoseconds have no share in steps of a virtual clock, and differ from run to run.
  if (simulation().virtual_clock != nullptr) return health;
  health.scope_cost_ns = scope_cost_ns_;
  health.op_cost_ns = op_cost_ns_;
  health.writer_cpu_ns = writer_cpu_ns_.load(std::memory_order_relaxed);
  return health;
}

// What rates are held against. A CPU has to be measured, which takes its time: only where operators
// were counted, and not while steps run.
DeviceInfo SessionState::describe_device(const Profile& profile, bool may_measure) const {
  if (!given_device_.origin.empty()) return given_device_;
  if (!profile.run.device.empty()) return roofline::find_device_info(profile.run);
  const bool is_virtual = simulation().virtual_clock != nullptr;
  const bool is_wanted =
      std::ranges::any_of(profile.operators, &Operator::counted) && !profile.run.summary;
  return is_wanted && may_measure && !is_virtual ? measured_cpu(hooks_->compute_threads())
                                                 : DeviceInfo{};
}

Result<Profile> SessionState::stop() {
  if (!is_ours()) {
    return Error{"cannot stop the session", "it belongs to the process that forked this one", ""};
  }
  const std::lock_guard lock(mutex_);
  if (stopped_) {
    return Error{"cannot stop the session", "it was stopped before", "Its profile has the result"};
  }
  if (mode_ == StepMode::kRecord) sample_edge();
  const std::uint64_t now = clock_ticks();
  if (mode_ != StepMode::kIdle) hooks_->disable();
  recorder::withdraw();
  if (ThreadState* thread = recorder::last_state();
      thread != nullptr && thread->recording() == recording_.get())
    thread->end_session();
  mode_ = StepMode::kIdle;
  stopped_ = true;
  formulas_.reset();
  {
    const std::lock_guard wake_lock(wake_mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  writer_->join();
  writer_.reset();
  restore_terminate_handler();
  try {
    if (broken_.load()) throw std::bad_alloc();
    if (const auto clocks = read_clocks()) pipeline_->clocks(*clocks);
    pipeline_->take(edge_samples_);
    profile_ = pipeline_->finish(now, closing_health(), [this](const Profile& profile) {
      return describe_device(profile, /*may_measure=*/true);
    });
  } catch (...) {  // no memory; what was written so far can be read, as cut
  }
  end_ns_ = pipeline_->to_ns(now);
  pipeline_.reset();
  device_on_ = false;
  if (device_ != nullptr) device_->close();
  recording_->pool().trim();
  if (!profile_) {
    const std::string& part = output_->part();
    return Error{"cannot finish the recording", "the writer ran out of memory",
                 "Record fewer steps at a time" +
                     (part.empty() ? "" : "; what was written until then is in " + part)};
  }
  if (!has_recorded_ && output_->leave_existing()) {
    profile_->health.notes.push_back("nothing was recorded: what was in " + output_->path() +
                                     " before is left as it was");
    return *profile_;
  }
  if (auto written = output_->commit(); !written) {
    Error error = written.error();
    error.remedy += "; the result is in profile(), and save() writes the trace elsewhere";
    return error;
  }
  return *profile_;
}

// Unless another session has begun meanwhile, which needs ours.
void SessionState::restore_terminate_handler() const {
  Active& current = active();
  const std::lock_guard lock(current.mutex);
  if (current.newest == this && std::get_terminate() == &on_terminate)
    std::set_terminate(current.previous_terminate);
}

Result<Profile> SessionState::profile() const {
  if (!is_ours()) {
    return Error{"cannot give a profile", "the session belongs to the process that forked this one",
                 ""};
  }
  const std::lock_guard lock(mutex_);
  if (profile_) return *profile_;
  if (!stopped_ && !broken_.load()) {
    try {
      const std::lock_guard pipeline_lock(pipeline_mutex_);
      return pipeline_->snapshot(clock_ticks(), closing_health(), [this](const Profile& profile) {
        return describe_device(profile, /*may_measure=*/false);
      });
    } catch (const std::bad_alloc&) {
      return Error{"cannot give a profile", "there is no memory for it", ""};
    }
  }
  return Error{"cannot give a profile", "the recording could not be finished", ""};
}

Result<void> SessionState::add_metric(const MetricValue& metric) {
  if (auto error = cards::refuse(metric.info)) return *error;
  const std::string tried = "cannot keep the metric \"" + metric.info.key + "\"";
  if (!metric.value) return Error{tried, "it has no value", "Give it a number"};
  if (!is_ours())
    return Error{tried, "the session belongs to the process that forked this one", ""};
  const std::lock_guard lock(mutex_);
  if (profile_) {
    put_metric(profile_->metrics, metric);
    append_metric(*output_, end_ns_, metric);
    if (auto written = output_->commit(); !written) return written;
    return output_->update_copies();
  }
  if (stopped_ || broken_.load()) return Error{tried, "the recording could not be finished", ""};
  try {
    const std::lock_guard pipeline_lock(pipeline_mutex_);
    pipeline_->add_metric(clock_ticks(), metric);
  } catch (const std::bad_alloc&) {
    return Error{tried, "there is no memory for it", ""};
  }
  return {};
}

Result<void> SessionState::save(const std::string& path) const {
  if (!is_ours()) {
    return Error{"cannot save the trace to " + path,
                 "the session belongs to the process that forked this one", ""};
  }
  const std::lock_guard lock(mutex_);
  if (!stopped_) {
    return Error{"cannot save the trace to " + path, "the session is still recording",
                 "Call stop() first"};
  }
  return output_->copy_to(path);
}

void SessionState::stop_active() noexcept {
  try {
    std::shared_ptr<SessionState> session;
    {
      const std::unique_lock lock(active().mutex, std::try_to_lock);
      if (lock.owns_lock()) session = active().session.lock();
    }
    if (session == nullptr || session->stopped_ || !session->is_ours()) return;
    static_cast<void>(session->stop());
  } catch (...) {  // the program is ending; what was flushed is on disk
  }
}

void SessionState::forget_active_after_fork() noexcept {
  recorder::forget_after_fork();
  Active& current = active();
  std::construct_at(&current.mutex);
  if (auto session = current.session.lock()) {
    // The file is the parent's. All else may have been caught in mid-change by the fork, so it is
    // never touched again: the hooks stay and find that nothing is recorded, and the session is not
    // destroyed.
    session->output_->abandon();
    try {
      static_cast<void>(new std::shared_ptr<SessionState>(std::move(session)));
    } catch (...) {  // no memory at all: the child will not get far
    }
  }
  current.session.reset();
}

}  // namespace layertrace
