// More than one thread, process or session.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <random>
#include <thread>

#include "victim.h"

namespace {
std::atomic<bool> threads_fail{false};
void fail_threads(bool fail) { threads_fail = fail; }
}  // namespace

// In front of the C library's.
extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
    void* argument) noexcept {
  if (threads_fail) return EAGAIN;
  using Function = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const real = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, run, argument);
}

namespace victim {
namespace {

using std::chrono::milliseconds;

// Waits for a child; kills one that hangs. Its exit code, or −signal, or −1000 for one that hung.
int wait_for(pid_t child) {
  constexpr int kPolls = 6000;
  for (int poll = 0; poll < kPolls; ++poll) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return -1000;
}

constexpr int kChildCode = 7;

// What a child does with what it inherited: all of it must be harmless, and nothing of it may reach
// the parent's file.
void use_inherited(Trainer& trainer, Session& session) {
  trainer.step();
  session.step();
  if (session.recording()) std::_Exit(50);
  if (session.stop()) std::_Exit(51);
  if (session.save("/tmp/never_written.pftrace")) std::_Exit(52);
}

// A child's own session counts what it runs once.
void record_own(Net& model, Trainer& trainer, const std::string& output) {
  auto own = Session::start(model, {.output = output});
  if (!own) {
    say("child_start", outcome(own));
    std::_Exit(53);
  }
  for (int i = 0; i < 2; ++i) {
    trainer.step();
    own->step();
  }
  if (!own->stop()) std::_Exit(54);
}

// How children end, in turn. To exit takes a while: LibTorch has much to destroy.
enum class ChildEnd {
  kExec,
  kOwnSession,
  kSameFile,
  kDestroy,
  kExit,
  kUnderscoreExit,
  kCount = 10
};

[[noreturn]] void be_child(int number, Net& model, Trainer& trainer,
                           std::unique_ptr<Session>& session, const std::string& output) {
  ::alarm(100);
  switch (static_cast<ChildEnd>(number % static_cast<int>(ChildEnd::kCount))) {
    case ChildEnd::kExec:
      ::execl("/bin/sh", "sh", "-c", "exit 7", nullptr);
      std::_Exit(55);
    case ChildEnd::kOwnSession:
      record_own(model, trainer, output + ".child" + std::to_string(number));
      std::exit(kChildCode);
    case ChildEnd::kSameFile:
      if (Session::start(model, {.output = output})) std::_Exit(56);
      std::exit(kChildCode);
    case ChildEnd::kDestroy:
      use_inherited(trainer, *session);
      session.reset();
      std::exit(kChildCode);
    case ChildEnd::kExit:
      use_inherited(trainer, *session);
      std::exit(kChildCode);
    default:
      use_inherited(trainer, *session);
      ::_exit(kChildCode);
  }
}

// forks OUTPUT COUNT: forks from one thread while another records heavily.
int forks(const Arguments& arguments) {
  const std::string& output = arguments.at(0);
  const int count = std::stoi(arguments.at(1));
  Net model;
  Trainer trainer(model);
  static std::unique_ptr<Session> session;
  session = std::make_unique<Session>(must_start(*model, {.output = output}));
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> steps{0};
  std::thread busy([&] {
    Net own;
    Trainer own_trainer(own);
    std::uint64_t number = 0;
    while (!over) {
      const layertrace::Scope scope("busy " + std::to_string(++number % 1000));
      enter_scope_pairs(model, 5);
      own_trainer.step();
      session->step();
      ++steps;
      std::this_thread::sleep_for(milliseconds(3));
    }
  });
  std::string codes;
  std::thread forker([&] {
    std::minstd_rand random(1);
    for (int i = 0; i < count; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      std::cout.flush();
      pid_t child = 0;
      {
        const layertrace::ModuleScope scope(
            model.get());  // the child leaves what its parent entered
        child = ::fork();
      }
      if (child == 0) be_child(i, model, trainer, session, output);
      codes += std::to_string(wait_for(child)) + ",";
    }
  });
  forker.join();
  over = true;
  busy.join();
  say("children", codes);
  const auto profile = session->stop();
  say("stop", outcome(profile));
  if (profile) say_profile(*profile);
  say("steps_made", steps.load());
  return 0;
}

// fork_in_hooks OUTPUT COUNT: forks while another thread is in and out of those hooks that take a
// lock (names of regions, modules met from ever another caller). Each child needs the same locks
// for a session of its own.
int fork_in_hooks(const Arguments& arguments) {
  Net model;
  static std::unique_ptr<Session> session;
  session =
      std::make_unique<Session>(must_start(*model, {.output = arguments.at(0), .ops = false}));
  std::atomic<bool> over{false};
  std::thread busy([&] {
    while (!over) {
      const layertrace::Scope region("some region");
      const layertrace::ModuleScope alone(model->fc1.get());
      const layertrace::ModuleScope outer(model.get());
      const layertrace::ModuleScope below(model->fc1.get());
    }
  });
  std::string codes;
  for (int i = 0; i < std::stoi(arguments.at(1)); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(100);
      auto own = Session::start(model, {.ops = false, .count = layertrace::Counting::kOff});
      if (!own) std::_Exit(53);
      {
        const layertrace::Scope region("a name of the child's");
        enter_scope_pairs(model, 10);
      }
      const auto profile = own->stop();
      const bool right = profile && profile->health.recorded == 1 + 2 + 10 * kRecordsPerPair;
      ::_exit(right ? kChildCode : 54);
    }
    codes += std::to_string(wait_for(child)) + ",";
  }
  over = true;
  busy.join();
  say("children", codes);
  say("stop", outcome(session->stop()));
  return 0;
}

// threads OUTPUT COUNT: threads are born, record and die; the session is stopped by one of them.
int threads(const Arguments& arguments) {
  const int count = std::stoi(arguments.at(1));
  Net model;
  Session session = must_start(
      *model, {.output = arguments.at(0), .ops = false, .count = layertrace::Counting::kOff});
  std::uint64_t pairs = 0;
  std::uint64_t steps = 0;
  for (int i = 0; i < count; i += 4) {
    std::vector<std::thread> batch;
    for (int j = 0; j < 4; ++j) {
      const auto here = static_cast<std::uint64_t>((i + j) % 50);
      batch.emplace_back([&model, here] { enter_scope_pairs(model, here); });
      pairs += here;
    }
    for (auto& thread : batch) thread.join();
    if (i % 40 == 0) {
      session.step();
      ++steps;
    }
  }
  std::thread([&] {
    const auto profile = session.stop();
    say("stop", outcome(profile));
    say("expected", 1 + steps + pairs * kRecordsPerPair);
    if (profile) say_profile(*profile);
  }).join();
  return 0;
}

Result<Profile> stop_on_another_thread(Session& session) {
  return std::async(std::launch::async, [&] { return session.stop(); }).get();
}

// sessions OUTPUT COUNT: sessions so short that the writer hardly wakes, each with a thread that
// was born just before its end. Says how many did not count exactly what was emitted.
int sessions(const Arguments& arguments) {
  const int count = std::stoi(arguments.at(1));
  Net model;
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    Session session = must_start(
        *model, {.output = arguments.at(0), .ops = false, .count = layertrace::Counting::kOff});
    if (i % 3 == 1) std::this_thread::sleep_for(milliseconds(3));
    std::thread([&] { enter_scope_pairs(model, 5); }).join();
    const auto profile = stop_on_another_thread(session);
    const bool right = profile && profile->health.recorded == 1 + 5 * kRecordsPerPair &&
                       profile->health.dropped == 0;
    wrong += right ? 0 : 1;
  }
  say("wrong", wrong);
  return 0;
}

// busy_stop OUTPUT: stopped while other threads are in the middle of forward and backward, which
// they go on with.
int busy_stop(const Arguments& arguments) {
  Net model;
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> done{0};
  constexpr int kThreads = 3;
  std::vector<std::thread> busy;
  busy.reserve(kThreads);
  Session session = must_start(*model, {.output = arguments.at(0)});
  for (int i = 0; i < kThreads; ++i) {
    busy.emplace_back([&] {
      Net own;
      Trainer trainer(own);
      for (; !over; ++done) trainer.step();
    });
  }
  while (done < 50) std::this_thread::sleep_for(milliseconds(1));
  session.step();
  const auto profile = stop_on_another_thread(session);
  const std::uint64_t at_stop = done;
  while (done < at_stop + 50) std::this_thread::sleep_for(milliseconds(1));
  // The same threads meet the next session.
  Session next = must_start(*model, {.output = arguments.at(0) + ".next"});
  const std::uint64_t at_next = done;
  while (done < at_next + 50) std::this_thread::sleep_for(milliseconds(1));
  next.step();
  const auto next_profile = next.stop();
  over = true;
  for (auto& thread : busy) thread.join();
  say("stop", outcome(profile));
  say("next_stop", outcome(next_profile));
  if (profile) say_profile(*profile);
  return 0;
}

// nested OUTPUT OTHER: what the API answers when it is called out of turn.
int nested(const Arguments& arguments) {
  const std::string& output = arguments.at(0);
  const std::string& other = arguments.at(1);
  Net model;
  Trainer trainer(model);
  Session session = must_start(*model, {.output = output});
  trainer.step();
  session.step();
  say("second_start", outcome(Session::start(model, {.output = other})));
  std::thread([&] {
    say("thread_start", outcome(Session::start(model, {.output = other})));
  }).join();
  const auto early = session.profile();
  say("early_profile", outcome(early));
  say("early_steps", early ? early->step_count : 0);
  say("early_save", outcome(session.save(other)));
  trainer.step();
  session.step();
  const auto profile = session.stop();
  say("stop", outcome(profile));
  if (profile) say_profile(*profile);
  say("second_stop", outcome(session.stop()));
  session.step();  // after the end: nothing
  say("recording", session.recording());
  say("late_profile", outcome(session.profile()));

  Session moved = std::move(session);
  say("moved_from_stop",
      outcome(session.stop()));  // NOLINT(bugprone-use-after-move): that is the fault
  say("moved_to_profile", outcome(moved.profile()));
  auto next = Session::start(model, {.output = other});
  say("next_start", outcome(next));
  trainer.step();
  next->step();
  say("next_stop", outcome(next->stop()));
  say("no_models", outcome(Session::start(
                       std::vector<std::pair<std::string, torch::nn::Module*>>{{"a", nullptr}})));
  say("small_cap", outcome(Session::start(model, {.memory_cap_bytes = 1})));
  return 0;
}

// signals OUTPUT: a program that blocks a signal in all its threads and waits for it. Through a
// thread of ours that did not block it, the signal would end the program.
int signals(const Arguments& arguments) {
  Net model;
  Session session = must_start(*model, {.output = arguments.at(0)});
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  ::kill(::getpid(), SIGUSR1);
  std::this_thread::sleep_for(milliseconds(20));
  int received = 0;
  sigwait(&wanted, &received);
  say("received", received == SIGUSR1 ? "SIGUSR1" : "another");
  session.step();
  say("stop", outcome(session.stop()));
  return 0;
}

// no_thread OUTPUT: the system gives no thread for the writer.
int no_thread(const Arguments& arguments) {
  Net model;
  fail_threads(true);
  say("start", outcome(Session::start(model, {.output = arguments.at(0)})));
  fail_threads(false);
  say("next_start", outcome(Session::start(model, {.output = arguments.at(0)})));
  return 0;
}

// loader OUTPUT: LibTorch's DataLoader, whose workers are threads.
int loader(const Arguments& arguments) {
  struct Numbers : torch::data::Dataset<Numbers> {
    torch::data::Example<> get(std::size_t index) override {
      const layertrace::Scope scope("data");
      return {torch::full({16}, static_cast<double>(index)).add(1), torch::zeros(1)};
    }
    torch::optional<std::size_t> size() const override { return 64; }
  };
  Net model;
  Session session = must_start(*model, {.output = arguments.at(0)});
  for (int epoch = 0; epoch < 3; ++epoch) {
    auto batches = torch::data::make_data_loader(Numbers().map(torch::data::transforms::Stack<>()),
                                                 torch::data::DataLoaderOptions(8).workers(2));
    for (const auto& batch : *batches) {
      model->forward(batch.data).sum().backward();
      session.step();
    }
  }
  const auto profile = session.stop();
  say("stop", outcome(profile));
  if (profile) say_profile(*profile);
  return 0;
}

}  // namespace

std::span<const Mode> process_modes() {
  static constexpr Mode kModes[] = {
      {"forks", &forks},         {"fork_in_hooks", &fork_in_hooks},
      {"threads", &threads},     {"sessions", &sessions},
      {"busy_stop", &busy_stop}, {"nested", &nested},
      {"loader", &loader},       {"signals", &signals},
      {"no_thread", &no_thread},
  };
  return kModes;
}

}  // namespace victim
