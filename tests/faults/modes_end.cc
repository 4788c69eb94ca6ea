// How a program ends while a session records.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "victim.h"

namespace victim {
namespace {

constexpr int kSteps = 3;

std::optional<Session>& static_session() {
  static std::optional<Session> session;
  return session;
}

struct ExitingImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    const layertrace::ModuleScope scope(this);
    std::exit(3);
    return x;
  }
};

[[noreturn]] void fail() { throw std::runtime_error("the user's own trouble"); }

void run_steps(Trainer& trainer, std::optional<Session>& session) {
  for (int i = 0; i < kSteps; ++i) {
    trainer.step();
    if (session) session->step();
  }
}

// end KIND OUTPUT: ends as KIND says, without stop(). With "-" for OUTPUT there is no session, and
// the end must be the same.
int end(const Arguments& arguments) {
  const std::string& kind = arguments.at(0);
  const std::string& output = arguments.at(1);
  Net model;
  Trainer trainer(model);
  std::optional<Session> local;
  std::optional<Session>& session = kind == "local" || kind == "throw" ? local : static_session();
  if (output != "-") session = must_start(*model, {.output = output});
  run_steps(trainer, session);

  if (kind == "local" || kind == "static") return 5;
  if (kind == "leak") {
    if (session) new Session(std::move(*session));  // NOLINT(*-owning-memory): that is the fault
    session.reset();
    return 5;
  }
  if (kind == "exit") std::exit(3);
  if (kind == "exit_in_forward") ExitingImpl().forward(torch::ones(1));
  if (kind == "exit_on_thread") {
    std::thread([] { std::exit(3); }).join();
  }
  if (kind == "quick_exit") std::quick_exit(3);
  if (kind == "_exit") ::_exit(4);
  if (kind == "throw") fail();
  if (kind == "throw_on_thread") std::thread(&fail).join();
  if (kind == "throw_in_noexcept") [&]() noexcept { fail(); }();
  if (kind == "abort" || kind == "segv") {
    wait_until_quiet(output + ".part");  // nothing catches these; what was written stays
    if (kind == "abort") std::abort();
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  return 97;
}

// record OUTPUT: ten steps; then waits for a line on stdin; then steps without end, until it is
// killed.
int record(const Arguments& arguments) {
  Net model;
  Trainer trainer(model);
  Session session = must_start(*model, {.output = arguments.at(0)});
  for (int i = 0; i < 10; ++i) {
    trainer.step();
    session.step();
  }
  say("paused", 10);
  std::string line;
  std::getline(std::cin, line);
  for (;;) {
    trainer.step();
    session.step();
  }
}

}  // namespace

std::span<const Mode> end_modes() {
  static constexpr Mode kModes[] = {{"end", &end}, {"record", &record}};
  return kModes;
}

}  // namespace victim
