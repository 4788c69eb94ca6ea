// How sessions end: what the file says is what the program had, and trouble is told and survived.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <latch>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <layertrace/trace.h>

#include "base/files.h"
#include "perfetto/profile_text.h"
#include "session/pipeline.h"
#include "session/quiet_session.h"

#if !defined(__SANITIZE_ADDRESS__)  // which has an allocator of its own, and watches it
namespace {
std::atomic<bool> writers_without_memory = false;

bool is_writer() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::string_view(name) == "layertrace";
}
}  // namespace

// The program's own: lets a test take the memory from under the writer thread alone.
void* operator new(std::size_t bytes) {
  if (writers_without_memory.load(std::memory_order_relaxed) && is_writer()) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
#endif

namespace layertrace {
namespace {

using test::FileSizeLimit;
using test::profile_text;
using test::SessionTest;
using testing::Contains;
using testing::HasSubstr;

std::uint64_t no_sequence() { return 0; }

// A training step with all that records can be, an exception and nodes of its own among it.
void train_step(std::uint64_t* sequence) {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return;
  const NameId mm = NameTable::instance().intern("aten::mm");
  const NameId backward = NameTable::instance().intern("backward");
  const auto key = static_cast<std::uint64_t>(gettid());
  const auto root = thread->enter_scope(LayerId{0}, nullptr, *sequence);
  const auto child = thread->enter_scope(LayerId{1}, nullptr, *sequence);
  thread->enter_op(mm, 0);
  thread->leave_op(&no_sequence);
  const std::uint64_t node_number = (*sequence)++;
  thread->leave(child, *sequence, node_number % 5 == 4);
  thread->leave(root, *sequence, false);
  const auto pass =
      thread->enter_region(backward, static_cast<std::uint8_t>(Phase::kBackward), *sequence);
  const auto node = thread->enter_node(mm, pack({node_number, key}), 0, *sequence);
  thread->enter_op(mm, 0);
  thread->leave_op(&no_sequence);
  thread->leave(node, *sequence, false);
  thread->leave(pass, *sequence, false);
}

class Outcome : public SessionTest {
 protected:
  // Stops the session and checks that its file says the same, in every field.
  void expect_file_equals_profile(SessionState& session, const std::string& path) {
    const auto profile = session.stop();
    ASSERT_TRUE(profile) << profile.error().message();
    const auto loaded = load(path);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(profile_text(*loaded), profile_text(*profile));
    const auto kept = session.profile();
    ASSERT_TRUE(kept);
    EXPECT_EQ(profile_text(*kept), profile_text(*profile));
  }
};

TEST_F(Outcome, TheFileSaysWhatTheProgramHad) {
  const std::string path = file("run.pftrace");
  auto session =
      start({.output = path, .schedule = {.skip = 1, .warmup = 1, .record = 3, .repeat = 0}});
  ASSERT_TRUE(session);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&over] {
      std::uint64_t sequence = 0;
      while (!over) {
        train_step(&sequence);
        std::this_thread::yield();
      }
    });
  }
  std::uint64_t sequence = 0;
  for (int i = 0; i < 23; ++i) {
    train_step(&sequence);
    (*session)->step();
  }
  expect_file_equals_profile(**session, path);
  over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Outcome, TheFileSaysWhatTheProgramHadAlsoWhenMuchIsDropped) {
  const std::string path = file("run.pftrace");
  auto session = start({.output = path, .memory_cap_bytes = std::size_t{1} << 20});
  ASSERT_TRUE(session);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([] {
      std::uint64_t sequence = 0;
      for (int call = 0; call < 20'000; ++call) train_step(&sequence);
    });
  }
  std::uint64_t sequence = 0;
  for (int i = 0; i < 200; ++i) {
    for (int call = 0; call < 50; ++call) train_step(&sequence);
    (*session)->step();
  }
  for (std::thread& thread : threads) thread.join();
  expect_file_equals_profile(**session, path);
}

TEST_F(Outcome, CutsWhatIsOpenAtTheStop) {
  const std::string path = file("run.pftrace");
  auto session = start({.output = path});
  ASSERT_TRUE(session);
  call_model();
  (*session)->step();
  ThreadState* thread = recorder::this_thread();
  const auto open = thread->enter_scope(LayerId{0}, nullptr, 0);
  expect_file_equals_profile(**session, path);
  EXPECT_EQ((*session)->profile()->health.cut_scopes, 1u);
  thread->leave(open, 0, false);  // comes too late, and harms nothing
  EXPECT_EQ(thread->depth(), 0u);
}

TEST_F(Outcome, TheCostOfTheWarmUpIsNotTheStepsCost) {
  const auto output = OutputFile::create("", 1 << 20);
  ASSERT_TRUE(output);
  const auto recording = std::make_shared<Recording>(16, &test::QuietHooks::key);
  recording->definitions().add_layer({.path = "", .type = "Net"});
  recording->definitions().add_layer({.path = "a"});
  Pipeline pipeline(recording, **output, {}, TickScale::measure(), 1'000);
  recording->open_window();
  recorder::publish(recording);
  recorder::set_recording(true);
  for (int i = 0; i < 100; ++i) call_model();  // warm-up
  ThreadState* thread = recorder::this_thread();
  thread->mark(RecordKind::kWindow, 0, 1);
  call_model();
  thread->mark(RecordKind::kStep, 0, 0);
  recorder::withdraw();
  Health given;
  given.scope_cost_ns = 3;
  const Profile profile = pipeline.finish(clock_ticks(), given);
  ASSERT_EQ(profile.steps.size(), 1u);
  const auto wall_ns = static_cast<double>(profile.steps[0].wall_ns);
  EXPECT_DOUBLE_EQ(profile.health.tracing_share, 2 * 3 / wall_ns);
}

// ---- Trouble ----

TEST_F(Outcome, ADiskThatFillsUpLosesNothing) {
  const std::string path = file("run.pftrace");
  auto session = start({.output = path});
  ASSERT_TRUE(session);
  {
    const FileSizeLimit limit(2'000);
    std::uint64_t sequence = 0;
    for (int i = 0; i < 200; ++i) {
      train_step(&sequence);
      (*session)->step();
    }
    const auto stopped = (*session)->stop();
    ASSERT_FALSE(stopped);
    EXPECT_THAT(stopped.error().message(), HasSubstr("File too large"));
    EXPECT_THAT(stopped.error().message(), HasSubstr("save()"));
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_FALSE((*session)->save(file("still_full.pftrace")));
    EXPECT_FALSE(std::filesystem::exists(file("still_full.pftrace")));
  }
  const auto profile = (*session)->profile();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->steps.size(), 200u);
  for (const std::string& place : {file("elsewhere.pftrace"), path}) {
    const auto saved = (*session)->save(place);
    ASSERT_TRUE(saved) << saved.error().message();
    const auto loaded = load(place);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(profile_text(*loaded), profile_text(*profile));
  }
}

TEST_F(Outcome, ARelativeOutputIsWhereTheProgramStarted) {
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(folder_ / "elsewhere");
  std::filesystem::current_path(folder_);
  auto session = start({.output = "run.pftrace"});
  std::filesystem::current_path(folder_ / "elsewhere");
  call_model();
  if (session) expect_file_equals_profile(**session, file("run.pftrace"));
  std::filesystem::current_path(before);
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "elsewhere"));
}

// Memory that runs out ends the recording, not the program; what was written is kept and named.
void expect_stop_without_memory(SessionState& session) {
  const auto profile = session.stop();
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().message(), HasSubstr("the writer ran out of memory"));
  EXPECT_THAT(profile.error().message(), HasSubstr(".part"));
  const auto kept = session.profile();
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message(), HasSubstr("could not be finished"));
}

TEST_F(Outcome, NoMemoryAtTheStopIsAnError) {
  auto session = start({.output = file("run.pftrace")});
  ASSERT_TRUE(session);
  call_model();
  test::QuietHooks::no_memory_for_notes = true;
  expect_stop_without_memory(**session);
  test::QuietHooks::no_memory_for_notes = false;
}

#if !defined(__SANITIZE_ADDRESS__)
TEST_F(Outcome, NoMemoryForTheWriterIsAnErrorAtTheStop) {
  auto session = start({.output = file("run.pftrace")});
  ASSERT_TRUE(session);
  writers_without_memory = true;
  std::uint64_t sequence = 0;
  for (int i = 0; i < 2'000 && detail::recording.load() != 0; ++i) {
    train_step(&sequence);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(detail::recording.load(), 0U) << "the recording goes on without its writer";
  writers_without_memory = false;
  expect_stop_without_memory(**session);
  auto next = start();
  ASSERT_TRUE(next) << next.error().message();
  ASSERT_TRUE((*next)->stop());
}
#endif

TEST_F(Outcome, ANameThatIsTakenMeanwhileIsAnError) {
  const std::string path = file("run.pftrace");
  auto session = start({.output = path});
  ASSERT_TRUE(session);
  call_model();
  std::filesystem::create_directory(path);
  ASSERT_FALSE((*session)->stop());
  EXPECT_TRUE((*session)->profile());
  EXPECT_TRUE((*session)->save(file("other.pftrace")));
  auto next = start();  // and is no obstacle to another session
  ASSERT_TRUE(next) << next.error().message();
  ASSERT_TRUE((*next)->stop());
}

TEST_F(Outcome, AScheduleThatComesToNoStepLeavesAnEarlierTraceAlone) {
  const std::string path = file("run.pftrace");
  auto first = start({.output = path});
  ASSERT_TRUE(first);
  call_model();
  ASSERT_TRUE((*first)->stop());
  const auto size = std::filesystem::file_size(path);
  auto second = start({.output = path, .schedule = {.skip = 9, .record = 1}});
  ASSERT_TRUE(second);
  call_model();
  const auto profile = (*second)->stop();
  ASSERT_TRUE(profile);
  EXPECT_THAT(profile->health.notes, Contains(HasSubstr("is left as it was")));
  EXPECT_EQ(std::filesystem::file_size(path), size);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST_F(Outcome, AModelThatCannotBeReadIsAnError) {
  const auto session = SessionState::start(
      {.output = file("run.pftrace")}, std::make_unique<test::QuietHooks>(&hooks_on_),
      [](Recording& /*recording*/) { throw std::runtime_error("a module without a name"); });
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message(), HasSubstr("a module without a name"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  auto next = start();
  ASSERT_TRUE(next) << next.error().message();
  ASSERT_TRUE((*next)->stop());
}

TEST_F(Outcome, TheTerminateHandlerIsTheProgramsOwnAgain) {
  const auto before = std::get_terminate();
  auto session = start();
  ASSERT_TRUE(session);
  EXPECT_NE(std::get_terminate(), before);
  ASSERT_TRUE((*session)->stop());
  EXPECT_EQ(std::get_terminate(), before);
}

// ---- Processes ----

// Holds up whoever switches it off.
class SlowHooks final : public CaptureHooks {
 public:
  SlowHooks(std::latch& reached, std::latch& go_on) : reached_(reached), go_on_(go_on) {}
  void enable(bool /*ops*/) noexcept override {}
  void disable() noexcept override {
    reached_.count_down();
    go_on_.wait();
  }
  std::uint64_t (*thread_key() const)() override { return &no_sequence; }
  double measure_op_cost() override { return 0; }
  std::string framework_version() const override { return ""; }
  std::vector<std::string> notes() const override { return {}; }

 private:
  std::latch& reached_;
  std::latch& go_on_;
};

TEST_F(Outcome, AForkedChildNeitherWaitsNorWrites) {
  const std::string path = file("run.pftrace");
  std::latch reached(1);
  std::latch go_on(1);
  auto session = SessionState::start(
      {.output = path}, std::make_unique<SlowHooks>(reached, go_on), [](Recording& recording) {
        recording.definitions().add_layer({.path = "", .type = "Net"});
        recording.definitions().add_layer({.path = "a"});
      });
  ASSERT_TRUE(session);
  call_model();
  Result<Profile> stopped = Error{"", "", ""};
  std::thread stopping([&] { stopped = (*session)->stop(); });
  reached.wait();  // stop() is under way and holds its lock
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a child that waits for the lock is killed, and the test fails
    (*session)->step();
    const bool quiet = !(*session)->recording() && !(*session)->stop() && !(*session)->profile() &&
                       !(*session)->save(file("child.pftrace")) && call_model() == 0 &&
                       recorder::this_thread() == nullptr;
    _exit(quiet ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(std::filesystem::exists(file("child.pftrace")));
  go_on.count_down();
  stopping.join();
  ASSERT_TRUE(stopped) << stopped.error().message();
  EXPECT_EQ(stopped->find("")->calls, 1);
  EXPECT_TRUE(load(path));
}

TEST_F(Outcome, OneOfManyThreadsGetsTheSession) {
  std::atomic<int> active{0};
  std::atomic<int> started{0};
  std::atomic<bool> two_at_once{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 8; ++round) {
        int switched = 0;
        auto session = SessionState::start({}, std::make_unique<test::QuietHooks>(&switched),
                                           [](Recording& recording) {
                                             recording.definitions().add_layer({.path = ""});
                                             recording.definitions().add_layer({.path = "a"});
                                           });
        if (!session) continue;
        if (active.fetch_add(1) != 0) two_at_once = true;
        ++started;
        call_model();
        (*session)->step();
        active.fetch_sub(1);
        EXPECT_TRUE((*session)->stop());
        EXPECT_EQ(switched, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(two_at_once);
  EXPECT_GE(started.load(), 4);
}

}  // namespace
}  // namespace layertrace
