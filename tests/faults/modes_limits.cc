// Too little memory, too little disk.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <thread>

#include "disk.h"
#include "victim.h"

namespace victim {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

// flood OUTPUT PAIRS THREADS: far more records than fit, while the disk hangs. If any hook waited
// for the writer, this would never end.
int flood(const Arguments& arguments) {
  const std::string& output = arguments.at(0);
  const std::uint64_t pairs = std::stoull(arguments.at(1));
  const int threads = std::stoi(arguments.at(2));
  constexpr std::uint64_t kLastPairs = 100;
  Net model;
  Session session = must_start(*model, {.output = output,
                                        .ops = false,
                                        .count = layertrace::Counting::kOff,
                                        .memory_cap_bytes = kMebibyte});
  disk::hold();
  std::atomic<int> flooding{threads};
  std::atomic<bool> room{false};
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      enter_scope_pairs(model, pairs);
      --flooding;
      while (!room) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      enter_scope_pairs(model, kLastPairs);  // with room again, the gap gets its mark
    });
  }
  while (flooding != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  session.step();
  disk::release();
  wait_until_quiet(output + ".part");
  room = true;
  for (auto& worker : workers) worker.join();
  session.step();

  const auto profile = session.stop();
  constexpr std::uint64_t kMarks = 3;  // recording starts, two steps
  say("expected",
      kMarks + static_cast<std::uint64_t>(threads) * (pairs + kLastPairs) * kRecordsPerPair);
  say("stop", outcome(profile));
  if (profile) say_profile(*profile);
  return 0;
}

std::size_t anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8));
  }
  return 0;
}

// memory OUTPUT STEPS CAP [hold]: many operators, many steps; says how much the program's own
// memory grew. With "-" for OUTPUT there is no session. With "hold" the disk hangs from the start,
// so that all that may fill up does.
int memory(const Arguments& arguments) {
  const std::string& output = arguments.at(0);
  const int steps = std::stoi(arguments.at(1));
  const std::size_t cap = std::stoull(arguments.at(2));
  Net model;
  Trainer trainer(model);
  torch::Tensor tensor = torch::zeros(8);
  constexpr int kOpsPerStep = 300;
  const auto run_step = [&] {
    trainer.step();
    for (int op = 0; op < kOpsPerStep; ++op) tensor.add_(1);
  };
  for (int i = 0; i < 20; ++i) run_step();  // LibTorch's own first needs
  const std::size_t before = anonymous_kib();
  std::optional<Session> session;
  if (output != "-") session = must_start(*model, {.output = output, .memory_cap_bytes = cap});
  if (arguments.size() > 3) disk::hold();
  std::size_t most = before;
  for (int i = 0; i < steps; ++i) {
    run_step();
    if (session) session->step();
    most = std::max(most, anonymous_kib());
  }
  disk::release();
  std::string stopped = "ok";
  if (session) {
    const auto profile = session->stop();
    stopped = outcome(profile);
    if (profile) say_profile(*profile);
  }
  most = std::max(most, anonymous_kib());
  say("stop", stopped);
  say("grown_kib", most - before);
  return 0;
}

void limit_file_size(rlim_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

// disk KIND OUTPUT OTHER STEPS: the disk fails while recording or at stop; then the trace is saved
// to OTHER.
int disk_fails(const Arguments& arguments) {
  const std::string& kind = arguments.at(0);
  const std::string& output = arguments.at(1);
  const std::string& other = arguments.at(2);
  const int steps = std::stoi(arguments.at(3));
  constexpr long kBytes = 1'000;
  constexpr int kStepsAtOnce = 50;
  Net model;
  Trainer trainer(model);
  constexpr uid_t kNobody = 65534;
  if (kind == "permission" && ::geteuid() == 0 && ::seteuid(kNobody) != 0) return 96;
  auto session = Session::start(model, {.output = output, .memory_cap_bytes = 2 * kMebibyte});
  say("start", outcome(session));
  if (!session) return 0;
  const auto train = [&](int count) {
    for (int i = 0; i < count; ++i) {
      trainer.step();
      session->step();
      // Takes in what has been recorded: it is the disk that fails here, not the writer on a busy
      // machine.
      if (i % kStepsAtOnce == 0) static_cast<void>(session->profile());
    }
  };
  train(2);
  wait_until_quiet(output + ".part");  // so that something is on the disk
  struct stat status {};
  ::stat((output + ".part").c_str(), &status);
  if (kind == "ENOSPC" || kind == "recovers") disk::fail_writes(output, kBytes, ENOSPC);
  if (kind == "EIO") disk::fail_writes(output, kBytes, EIO);
  if (kind == "rename") disk::fail_rename(output, EIO);
  if (kind == "RLIMIT_FSIZE") limit_file_size(static_cast<rlim_t>(status.st_size + kBytes));
  train(steps - 2);
  if (kind == "recovers") {
    wait_until_quiet(output + ".part");
    disk::repair();
  }
  say("stop", outcome(session->stop()));
  const auto profile = session->profile();
  say("profile", outcome(profile));
  if (profile) say_profile(*profile);
  limit_file_size(RLIM_INFINITY);
  say("save", outcome(session->save(other)));
  say("save_again", outcome(session->save(other)));
  disk::repair();
  auto next = Session::start(model, {});
  say("next_start", outcome(next));
  return 0;
}

// places PATH…: tries to record to each, then to nowhere.
int places(const Arguments& arguments) {
  Net model;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    say("start" + std::to_string(i), outcome(Session::start(model, {.output = arguments[i]})));
  }
  say("good_start", outcome(Session::start(model)));
  return 0;
}

// save DEATH OUTPUT TARGET: saves to TARGET again and again, and dies there as told; with "-",
// until it is killed.
int save(const Arguments& arguments) {
  const std::string& death = arguments.at(0);
  const std::string& target = arguments.at(2);
  Net model;
  Trainer trainer(model);
  Session session = must_start(*model, {.output = arguments.at(1)});
  for (int i = 0; i < 400; ++i) {
    trainer.step();
    session.step();
  }
  say("stop", outcome(session.stop()));
  if (death == "write") disk::die_in_write(target, 100'000);
  if (death == "rename") disk::die_in_rename(target);
  for (int count = 1;; ++count) say("saved", outcome(session.save(target)));
}

}  // namespace

std::span<const Mode> limit_modes() {
  static constexpr Mode kModes[] = {{"flood", &flood},
                                    {"memory", &memory},
                                    {"disk", &disk_fails},
                                    {"places", &places},
                                    {"save", &save}};
  return kModes;
}

}  // namespace victim
