#include "torch/auto_session.h"

#include <torch/nn/module.h>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

#include "base/vtable.h"
#include "capture/recorder.h"
#include "capture/schedule.h"
#include "torch/libtorch_modules.h"
#include "torch/module_identity.h"
#include "torch/module_registry.h"

namespace layertrace::auto_session {
namespace {

namespace fs = std::filesystem;

// Where the hooks were armed. A forked child has a copy of everything here, and no part in it.
pid_t own_process = 0;
pthread_t main_thread{};

// Leaves the program alone. The hooks that arm() turned on stay on only for a session.
void stand_back() noexcept {
  armed = false;
  waiting = false;
  if (recorder::this_thread() == nullptr) recorder::set_recording(false);
}

// Asked before the lock: in a forked child that may be held by a thread which is not there.
bool is_own_process() noexcept {
  if (getpid() == own_process) return true;
  stand_back();
  return false;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A module that the program has handled as a model. Where nothing tells whether it still lives, it
// is not touched.
struct Candidate {
  const torch::nn::Module* module;
  const void* vtable;
  std::weak_ptr<const torch::nn::Module> owner;
  bool owned;
  std::vector<std::weak_ptr<const torch::nn::Module>> children;  // they rarely outlive it
};

Candidate describe(const torch::nn::Module& module) {
  const auto owner = module.weak_from_this();
  Candidate candidate{&module, vtable_of(&module), owner, !owner.expired(), {}};
  for (const auto& child : module.children()) {
    if (child != nullptr) candidate.children.push_back(child);
  }
  return candidate;
}

bool is_of(const Candidate& candidate, const torch::nn::Module& module) {
  return candidate.vtable == vtable_of(&module) && has_owner(module, candidate.owner);
}

struct Stack {
  const char* low = nullptr;
  const char* top = nullptr;
};

Stack stack_of(pthread_t thread) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(thread, &attributes) != 0) return {};
  void* low = nullptr;
  std::size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return {static_cast<char*>(low), static_cast<char*>(low) + size};
}

// Is the address in the living part of this thread's stack, in that of the main thread, which stays
// for good, or in a program's own data?
bool is_in_place(const void* address) {
  const char marker = 0;
  const auto* at = static_cast<const char*>(address);
  if (at > &marker && at < stack_of(pthread_self()).top) return true;
  if (pthread_equal(pthread_self(), main_thread) == 0) {
    const Stack stack = stack_of(main_thread);
    if (at >= stack.low && at < stack.top) return true;
  }
  Dl_info library{};
  return dladdr(address, &library) != 0;
}

// A stack keeps the bytes of what was destroyed: the children tell more than the vtable.
bool is_alive(const Candidate& candidate) {
  if (candidate.owned) return !candidate.owner.expired();
  const auto is_gone = [](const auto& child) { return child.expired(); };
  return std::none_of(candidate.children.begin(), candidate.children.end(), is_gone) &&
         is_in_place(candidate.module) && vtable_of(candidate.module) == candidate.vtable;
}

bool holds(const torch::nn::Module& holder, const torch::nn::Module* module) {
  const auto children = holder.children();
  return std::any_of(children.begin(), children.end(), [&](const auto& child) {
    return child != nullptr && (child.get() == module || holds(*child, module));
  });
}

// A number from a variable; 0 where it is none.
std::uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

// "0:7:5", as the command writes it.
Schedule read_schedule() {
  const std::string text = variable("LAYERTRACE_RUN_SCHEDULE");
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    return {.skip = 0, .warmup = 7, .record = 5, .repeat = 1};
  return {.skip = number(text.substr(0, first)),
          .warmup = number(text.substr(first + 1, second - first - 1)),
          .record = number(text.substr(second + 1)),
          .repeat = 1};
}

// Which of several processes this is, by the variables of the usual launchers; "" for the only one.
std::string rank() {
  constexpr std::pair<const char*, const char*> kRanks[] = {
      {"RANK", "WORLD_SIZE"},           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMIX_RANK", "PMIX_SIZE"},       {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_NTASKS"},
  };
  for (const auto& [name, size] : kRanks) {
    if (!variable(name).empty() && number(variable(size)) > 1) return variable(name);
  }
  return "";
}

class AutoSession {
 public:
  static AutoSession& instance() {
    static auto* session =
        new AutoSession;  // never destroyed: hooks may run while the program exits
    return *session;
  }

  void meet_model(const torch::nn::Module& module) {
    const std::lock_guard lock(mutex_);
    std::erase_if(candidates_, [](const auto& each) { return each.owned && !is_alive(each); });
    const auto here = std::find_if(candidates_.begin(), candidates_.end(),
                                   [&](const auto& each) { return each.module == &module; });
    const bool known = here != candidates_.end() && is_of(*here, module);
    if (here == candidates_.end()) {
      candidates_.push_back(describe(module));
    } else {
      *here = describe(module);  // it may have got other children
    }
    if (known) return;
    std::erase(models_, &module);  // one that was here before
    if (session_) add_new_models();
  }

  void meet_layer() {
    const std::lock_guard lock(mutex_);
    if (!waiting) return;  // another thread was first
    start();
    waiting = false;
  }

  void end_optimizer_step(const void* optimizer) {
    const std::lock_guard lock(mutex_);
    if (!session_ || over_ || !ends_step(optimizer)) return;
    session_->step();
    ++steps_;
    if (schedule_.record != 0 && steps_ == schedule_.skip + schedule_.warmup + schedule_.record)
      finish();
  }

  void end_program() {
    const std::lock_guard lock(mutex_);
    finish();
    if (!report_.empty()) std::fputs(std::exchange(report_, "").c_str(), stderr);
  }

 private:
  AutoSession() : schedule_(read_schedule()) { note("torch", ""); }

  void start() {
    const std::string output = claim_output();
    const auto timing = parse_timing(variable("LAYERTRACE_RUN_TIMING"));
    const auto count = parse_counting(variable("LAYERTRACE_RUN_COUNT"));
    Options options{.output = output,
                    .schedule = schedule_,
                    .ops = variable("LAYERTRACE_RUN_OPS") != "0",
                    .count = count ? *count : Counting::kFirst,
                    .infer = true,
                    .timing = timing ? *timing : Timing::kBoth,
                    .name = variable("LAYERTRACE_RUN_NAME")};
    auto session =
        Session::start(std::vector<std::pair<std::string, torch::nn::Module*>>{}, options);
    if (!session) {
      stand_back();
      std::fprintf(stderr, "layertrace: nothing is recorded: %s\n",
                   session.error().message().c_str());
      return;
    }
    session_ = std::make_unique<Session>(std::move(*session));
    // On since arm(); a session that begins with a pause leaves it as it is.
    if (step_mode(schedule_, 0) == StepMode::kIdle) recorder::set_recording(false);
    output_ = output;
    std::atexit([] {
      if (is_own_process()) instance().end_program();
    });
    note("process." + std::to_string(getpid()), fs::absolute(output).string());
    add_new_models();
  }

  // Those of the candidates that are no part of another. The first has no name of its own.
  void add_new_models() {
    const auto registry = ModuleRegistry::active();
    if (registry == nullptr) return;
    std::vector<Candidate> alive;
    std::copy_if(candidates_.begin(), candidates_.end(), std::back_inserter(alive), is_alive);
    for (const Candidate& each : alive) {
      const bool is_part = std::any_of(alive.begin(), alive.end(), [&](const Candidate& other) {
        return other.module != each.module && holds(*other.module, each.module);
      });
      const bool known = std::find(models_.begin(), models_.end(), each.module) != models_.end();
      if (is_part || known) continue;
      registry->add_model_of_class(each.module);
      models_.push_back(each.module);
    }
  }

  // Of several optimizers that take turns the last of each round ends the step; the first round
  // shows which that is. Nothing tells when that one is destroyed: where another steps twice
  // without it, the round in between shows the next.
  bool ends_step(const void* optimizer) {
    if (optimizer == last_) {
      round_.clear();
      return true;
    }
    const bool again = std::find(round_.begin(), round_.end(), optimizer) != round_.end();
    if (again) {
      last_ = round_.back();
      round_.assign(1, optimizer);
      return optimizer == last_;
    }
    round_.push_back(optimizer);
    return last_ == nullptr && round_.size() == 1;
  }

  void finish() {
    if (over_ || !session_) return;
    over_ = true;
    armed = false;
    const auto profile = session_->stop();
    if (!profile) {
      report_ = "layertrace: " + profile.error().message() + "\n";
    } else if (profile->step_count == 0 ||
               (steps_ == 0 && schedule_.skip + schedule_.warmup != 0)) {
      report_ = "layertrace: the program ended after " + std::to_string(steps_) +
                " optimizer steps, and the first " +
                std::to_string(schedule_.skip + schedule_.warmup) +
                " are not recorded: choose others with --steps, as in --steps 0:5\n";
      for (const std::string& note : profile->health.notes) report_ += "layertrace: " + note + "\n";
    } else {
      if (rank().empty() || rank() == "0") report_ = "\n" + tree(*profile, for_terminal(2));
      report_ += "layertrace: the trace is " + output_ + "\n";
    }
  }

  std::string claim_output() {
    fs::path path = variable("LAYERTRACE_RUN_OUTPUT");
    if (path.empty()) path = std::string(program_invocation_short_name) + ".pftrace";
    if (path.extension().empty()) path += ".pftrace";
    std::string stem = path.stem().string();
    if (!rank().empty()) stem += ".rank" + rank();
    if (!note("claim." + rank(), "")) stem += ".pid" + std::to_string(getpid());
    return path.replace_filename(stem + path.extension().string()).string();
  }

  // In the command's folder for this run; false if a note of this name is there.
  static bool note(const std::string& name, const std::string& text) {
    const std::string folder = variable("LAYERTRACE_RUN_NOTES");
    if (folder.empty()) return true;
    std::FILE* file = std::fopen((folder + "/" + name).c_str(), "wx");
    if (file == nullptr) return errno != EEXIST;
    std::fputs(text.c_str(), file);
    std::fclose(file);
    return true;
  }

  std::mutex mutex_;
  const Schedule schedule_;
  std::vector<Candidate> candidates_;
  std::vector<const torch::nn::Module*> models_;
  std::unique_ptr<Session> session_;
  std::string output_;
  std::string report_;
  std::uint64_t steps_ = 0;
  std::vector<const void*> round_;  // who has stepped since the last step ended
  const void* last_ = nullptr;
  bool over_ = false;
};

// Children of the program start as it did: without us, until they turn out to link LibTorch.
void hand_on_environment() {
  for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH"}) {
    const std::string before = variable((std::string("LAYERTRACE_RUN_") + name).c_str());
    if (before.empty()) {
      unsetenv(name);
    } else {
      setenv(name, before.c_str(), 1);
    }
    unsetenv((std::string("LAYERTRACE_RUN_") + name).c_str());
  }
  unsetenv("LAYERTRACE_RUN_PRELOADED");
}

__attribute__((constructor)) void arm() {
  if (variable("LAYERTRACE_RUN_PRELOADED").empty()) return;
  hand_on_environment();
  own_process = getpid();
  main_thread = pthread_self();
  armed = true;
  waiting = true;
  recorder::set_recording(true);  // so that the first layer comes to us
}

}  // namespace

constinit std::atomic<bool> armed{false};
constinit std::atomic<bool> waiting{false};

void meet_model(const torch::nn::Module& module) noexcept {
  if (!is_own_process()) return;
  try {
    AutoSession::instance().meet_model(module);
  } catch (...) {  // no memory; the model is found by its layers only
  }
}

void meet_layer() noexcept {
  if (!is_own_process()) return;
  try {
    AutoSession::instance().meet_layer();
  } catch (...) {
    stand_back();
  }
}

void end_optimizer_step(const void* optimizer) noexcept {
  if (!is_own_process()) return;
  try {
    AutoSession::instance().end_optimizer_step(optimizer);
  } catch (...) {
    stand_back();
  }
}

}  // namespace layertrace::auto_session
