// More than one thread, process or session.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "victim.h"

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

// What a child does with what it inherited: all of it must be harmless, and nothing of it may reach the parent's file.
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

// How children end, in turn.
enum class ChildEnd { kExit, kUnderscoreExit, kExec, kOwnSession, kSameFile, kDestroy, kCount };

[[noreturn]] void be_child(int number, Net& model, Trainer& trainer, std::optional<Session>& session,
                           const std::string& output) {
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
    case ChildEnd::kUnderscoreExit:
      use_inherited(trainer, *session);
      ::_exit(kChildCode);
    default:
      use_inherited(trainer, *session);
      std::exit(kChildCode);
  }
}

// forks OUTPUT COUNT: forks from one thread while another records heavily.
int forks(const Arguments& arguments) {
  const std::string& output = arguments.at(0);
  const int count = std::stoi(arguments.at(1));
  Net model;
  Trainer trainer(model);
  static std::optional<Session> session;
  session = must_start(*model, {.output = output});
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> steps{0};
  std::thread busy([&] {
    Net own;
    Trainer own_trainer(own);
    std::uint64_t number = 0;
    while (!over) {
      const layertrace::Scope scope("busy " + std::to_string(++number % 1000));
      enter_scope_pairs(model, 50);
      own_trainer.step();
      session->step();
      ++steps;
    }
  });
  std::string codes;
  std::thread forker([&] {
    std::minstd_rand random(1);
    for (int i = 0; i < count; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      std::cout.flush();
      const pid_t child = ::fork();
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

// threads OUTPUT COUNT: threads are born, record and die; the session is stopped by one of them.
int threads(const Arguments& arguments) {
  const int count = std::stoi(arguments.at(1));
  Net model;
  Session session = must_start(*model, {.output = arguments.at(0), .ops = false});
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

// sessions OUTPUT COUNT: sessions so short that the writer hardly wakes, each with a thread that was born just before its
// end. Says how many did not count exactly what was emitted.
int sessions(const Arguments& arguments) {
  const int count = std::stoi(arguments.at(1));
  Net model;
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    Session session = must_start(*model, {.output = arguments.at(0), .ops = false});
    if (i % 3 == 1) std::this_thread::sleep_for(milliseconds(3));
    std::thread([&] { enter_scope_pairs(model, 5); }).join();
    std::optional<Result<Profile>> profile;
    std::thread([&] { profile = session.stop(); }).join();
    if (!*profile || (*profile)->health.recorded != 1 + 5 * kRecordsPerPair || (*profile)->health.dropped != 0) ++wrong;
  }
  say("wrong", wrong);
  return 0;
}

// busy_stop OUTPUT: stopped while other threads are in the middle of forward and backward, which they go on with.
int busy_stop(const Arguments& arguments) {
  Net model;
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> done{0};
  std::vector<std::thread> busy;
  Session session = must_start(*model, {.output = arguments.at(0)});
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      Net own;
      Trainer trainer(own);
      for (; !over; ++done) trainer.step();
    });
  }
  while (done < 50) std::this_thread::sleep_for(milliseconds(1));
  session.step();
  std::optional<Result<Profile>> profile;
  std::thread([&] { profile = session.stop(); }).join();
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
  say("stop", outcome(*profile));
  say("next_stop", outcome(next_profile));
  if (*profile) say_profile(**profile);
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
  std::thread([&] { say("thread_start", outcome(Session::start(model, {.output = other}))); }).join();
  say("early_profile", outcome(session.profile()));
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
  say("moved_from_stop", outcome(session.stop()));  // NOLINT(bugprone-use-after-move): that is the fault
  say("moved_to_profile", outcome(moved.profile()));
  auto next = Session::start(model, {.output = other});
  say("next_start", outcome(next));
  trainer.step();
  next->step();
  say("next_stop", outcome(next->stop()));
  say("no_models", outcome(Session::start(std::vector<std::pair<std::string, torch::nn::Module*>>{{"a", nullptr}})));
  say("small_cap", outcome(Session::start(model, {.memory_cap_bytes = 1})));
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
    auto batches = torch::data::make_data_loader(
        Numbers().map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions(8).workers(2));
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

const std::vector<Mode> kProcessModes = {
    {"forks", &forks},   {"threads", &threads}, {"sessions", &sessions}, {"busy_stop", &busy_stop},
    {"nested", &nested}, {"loader", &loader},
};

}  // namespace victim
