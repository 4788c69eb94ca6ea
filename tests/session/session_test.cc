// A session's life without any framework: hooks that do nothing, records that the tests write
// themselves.
#include "session/session_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <layertrace/report.h>
#include <layertrace/trace.h>

#include "capture/recorder.h"
#include "session/quiet_session.h"

namespace layertrace {
namespace {

using test::SessionTest;
using test::step_indices;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(SessionTest, RecordsStepsAndNamesTheFileAtTheEnd) {
  const std::string path = file("run.pftrace");
  auto session = start({.output = path});
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_TRUE(std::filesystem::exists(path + ".part"));
  for (int i = 0; i < 3; ++i) {
    call_model();
    (*session)->step();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile) << profile.error().message();
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  EXPECT_THAT(step_indices(*profile), ElementsAre(0, 1, 2));
  EXPECT_EQ(profile->find("")->calls, 1);
  EXPECT_EQ(profile->find("a")->calls, 1);

  const auto again = load(path);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(layers_json(*again), layers_json(*profile));
}

TEST_F(SessionTest, WithoutStepsTheWholeIsOne) {
  auto session = start();
  ASSERT_TRUE(session);
  call_model();
  call_model();
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile);
  EXPECT_THAT(step_indices(*profile), ElementsAre(0));
  EXPECT_EQ(profile->find("")->calls, 2);
}

// Each step has a thread of its own, as a loader's may; its calls are in that step, none is lost.
TEST_F(SessionTest, CountsWhatAThreadDoesInTheStepItWasBornIn) {
  auto session = start({.schedule = {.skip = 0, .warmup = 1, .record = 1, .repeat = 0}});
  ASSERT_TRUE(session);
  for (int i = 0; i < 12; ++i) {
    std::thread([this] {
      for (int call = 0; call < 10; ++call) call_model();
    }).join();
    (*session)->step();
  }
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->step_count, 6u);
  EXPECT_EQ(profile->find("")->calls, 10);
  EXPECT_EQ(profile->find("")->phase(Phase::kForward).calls.min, 10);
  EXPECT_EQ(profile->find("")->phase(Phase::kForward).calls.max, 10);
}

// More threads than chunks: each that has one goes on with it.
TEST_F(SessionTest, GoesOnWhereThereAreMoreThreadsThanMemory) {
  auto session = start({.memory_cap_bytes = std::size_t{1} << 20});
  ASSERT_TRUE(session);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  call_model();
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([this, &done] {
      while (!done) {
        call_model();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    call_model();
    (*session)->step();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->step_count, 200u);
  EXPECT_EQ(profile->health.emitted, profile->health.recorded + profile->health.dropped);
}

TEST_F(SessionTest, StopsWithoutRecords) {
  const std::string path = file("empty.pftrace");
  auto session = start({.output = path});
  ASSERT_TRUE(session);
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile);
  EXPECT_FALSE(profile->layers[0].ran);
  const auto again = load(path);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(layers_json(*again), layers_json(*profile));
}

struct ScheduleCase {
  Schedule schedule;
  std::vector<std::uint64_t> recorded;
};

TEST_F(SessionTest, TheScheduleChoosesTheSteps) {
  const ScheduleCase cases[] = {
      {{}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
      {{.skip = 3}, {3, 4, 5, 6, 7, 8, 9}},
      {{.skip = 2, .warmup = 1, .record = 2}, {3, 4}},
      {{.skip = 1, .warmup = 1, .record = 2, .repeat = 2}, {2, 3, 6, 7}},
      {{.skip = 0, .warmup = 1, .record = 1, .repeat = 0}, {1, 3, 5, 7, 9}},
      {{.skip = 20, .record = 1}, {}},
  };
  for (const ScheduleCase& each : cases) {
    auto session = start({.schedule = each.schedule});
    ASSERT_TRUE(session);
    for (int i = 0; i < 10; ++i) {
      call_model();
      (*session)->step();
    }
    const auto profile = (*session)->stop();
    ASSERT_TRUE(profile);
    EXPECT_EQ(step_indices(*profile), each.recorded);
    EXPECT_EQ(profile->find("")->calls, each.recorded.empty() ? 0 : 1);
  }
}

TEST_F(SessionTest, IdleStepsWriteNothing) {
  auto session = start({.schedule = {.skip = 5, .record = 1}});
  ASSERT_TRUE(session);
  EXPECT_EQ(hooks_on_, 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(call_model(), 0U);
    EXPECT_FALSE((*session)->recording());
    (*session)->step();
  }
  EXPECT_TRUE((*session)->recording());
  EXPECT_EQ(hooks_on_, 1);
  EXPECT_EQ(call_model(), 4U);
  (*session)->step();
  EXPECT_EQ(hooks_on_, 0);
  ASSERT_TRUE((*session)->stop());
}

// A scope that is open when one stretch of recording ends and the next begins belongs to neither's
// stack.
TEST_F(SessionTest, AScopeOpenAcrossStretchesDoesNotSwallowTheNext) {
  auto session = start({.schedule = {.skip = 0, .warmup = 0, .record = 1, .repeat = 0}});
  ASSERT_TRUE(session);
  (*session)->step();
  ASSERT_TRUE((*session)->stop());

  auto with_idle = start({.schedule = {.skip = 1, .record = 1, .repeat = 2}});
  ASSERT_TRUE(with_idle);
  (*with_idle)->step();
  ThreadState* thread = recorder::this_thread();
  const auto open = thread->enter_scope(LayerId{0}, nullptr, 0);
  (*with_idle)->step();  // idle
  (*with_idle)->step();  // records again
  call_model();
  (*with_idle)->step();
  thread->leave(open, 0, false);
  const auto profile = (*with_idle)->stop();
  ASSERT_TRUE(profile);
  EXPECT_THAT(step_indices(*profile), ElementsAre(1, 3));
  EXPECT_EQ(profile->find("")->phase(Phase::kForward).calls.max, 1);
  EXPECT_EQ(profile->health.cut_scopes, 1U);
}

TEST_F(SessionTest, ASecondSessionIsRefusedAndTheFirstUnharmed) {
  const std::string path = file("first.pftrace");
  auto first = start({.output = path});
  ASSERT_TRUE(first);
  call_model();
  const auto second = start({.output = file("second.pftrace")});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("already active"));
  EXPECT_THAT(second.error().message(), HasSubstr(path));
  EXPECT_FALSE(std::filesystem::exists(file("second.pftrace.part")));
  call_model();
  (*first)->step();
  const auto profile = (*first)->stop();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->find("")->calls, 2);
}

TEST_F(SessionTest, GivesTheProfileOfTheStepsSoFar) {
  auto session = start();
  ASSERT_TRUE(session);
  call_model();
  (*session)->step();
  const auto one = (*session)->profile();
  ASSERT_TRUE(one);
  EXPECT_EQ(one->step_count, 1U);
  EXPECT_EQ(one->find("")->calls, 1);
  call_model();
  call_model();
  const auto same = (*session)->profile();
  ASSERT_TRUE(same);
  EXPECT_EQ(same->step_count, 1U) << "the second step has not ended";
  (*session)->step();
  const auto two = (*session)->stop();
  ASSERT_TRUE(two);
  EXPECT_EQ(two->step_count, 2U) << "looking at it has changed nothing";
  EXPECT_EQ(two->find("")->calls, 1.5);
  EXPECT_EQ(two->health.dropped, 0U);
  EXPECT_EQ((*session)->profile()->step_count, 2U);
}

TEST_F(SessionTest, StoppingTwiceIsAnError) {
  auto session = start();
  ASSERT_TRUE(session);
  EXPECT_FALSE((*session)->save(file("early.pftrace")));
  ASSERT_TRUE((*session)->stop());
  const auto again = (*session)->stop();
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message(), HasSubstr("stopped before"));
  EXPECT_TRUE((*session)->profile());
}

TEST_F(SessionTest, WhereItCannotWriteItDoesNotStart) {
  const auto nowhere = start({.output = file("no/such/folder/run.pftrace")});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message(), HasSubstr("Create the folder"));
  const auto folder = start({.output = folder_.string()});
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message(), HasSubstr("Name a file"));
  EXPECT_FALSE(start({.memory_cap_bytes = 100}));
  auto works = start();
  ASSERT_TRUE(works) << works.error().message();
  ASSERT_TRUE((*works)->stop());
}

TEST_F(SessionTest, SavesElsewhereAsOftenAsAsked) {
  auto session = start();
  ASSERT_TRUE(session);
  call_model();
  (*session)->step();
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile);
  const auto nowhere = (*session)->save(file("missing/run.pftrace"));
  ASSERT_FALSE(nowhere);
  for (const char* name : {"one.pftrace", "two.pftrace"}) {
    const auto saved = (*session)->save(file(name));
    ASSERT_TRUE(saved) << saved.error().message();
    const auto again = load(file(name));
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(layers_json(*again), layers_json(*profile));
  }
}

// The program is never held up: what does not fit is dropped, and every record is accounted for.
TEST_F(SessionTest, ATinyCapDropsAndCountsExactly) {
  auto session = start({.output = file("tiny.pftrace"), .memory_cap_bytes = std::size_t{1} << 20});
  ASSERT_TRUE(session);
  std::atomic<std::uint64_t> emitted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&emitted] {
      std::uint64_t mine = 0;
      for (int call = 0; call < 50'000; ++call) mine += call_model();
      emitted += mine;
    });
  }
  for (std::thread& thread : threads) thread.join();
  (*session)->step();
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile) << profile.error().message();
  const Health& health = profile->health;
  const std::uint64_t marks = 2;  // the window's and the step's
  EXPECT_EQ(health.recorded + health.dropped, health.emitted);
  EXPECT_EQ(health.emitted, emitted + marks);
  EXPECT_GT(health.dropped, 0U);
  // What was kept is whole: every scope that began has ended.
  EXPECT_EQ(health.cut_scopes, 0U);
}

TEST_F(SessionTest, StopsFromAnotherThreadWhileOthersRecord) {
  for (int round = 0; round < 20; ++round) {
    auto session = start();
    ASSERT_TRUE(session);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&over] {
        while (!over) call_model();
      });
    }
    Result<Profile> profile = Error{"", "", ""};
    std::thread([&] { profile = (*session)->stop(); }).join();
    over = true;
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(profile) << profile.error().message();
    EXPECT_EQ(profile->health.recorded + profile->health.dropped, profile->health.emitted);
  }
}

std::size_t entries(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST_F(SessionTest, LeavesNothingBehind) {
  const auto once = [this] {
    auto session = start();
    ASSERT_TRUE(session) << session.error().message();
    call_model();
    (*session)->step();
    ASSERT_TRUE((*session)->stop());
  };
  once();
  const std::size_t descriptors = entries("/proc/self/fd");
  const std::size_t threads = entries("/proc/self/task");
  for (int i = 0; i < 200; ++i) once();
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  // A thread that was joined may be seen there for a moment still.
  for (int i = 0; i < 500 && entries("/proc/self/task") != threads; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(entries("/proc/self/task"), threads);
}

TEST_F(SessionTest, ASessionThatIsLetGoWritesItsTrace) {
  const std::string path = file("dropped.pftrace");
  {
    auto session = start({.output = path});
    ASSERT_TRUE(session);
    call_model();
    (*session)->step();
  }
  const auto profile = load(path);
  ASSERT_TRUE(profile) << profile.error().message();
  EXPECT_THAT(step_indices(*profile), ElementsAre(0));
  EXPECT_FALSE(profile->health.cut);
}

}  // namespace
}  // namespace layertrace
