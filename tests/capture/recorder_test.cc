// How threads meet a session, and how it ends for them.
#include "capture/recorder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include <layertrace/layertrace.h>

#include "capture/recording_thread.h"
#include "record/drain.h"

namespace layertrace {
namespace {

using test::KeepingConsumer;
using test::make_recording;
using test::Tally;
using test::tally;

std::vector<std::shared_ptr<ThreadBuffer>> threads_of(Recording& recording) {
  std::vector<std::shared_ptr<ThreadBuffer>> buffers;
  recording.take_new_threads(buffers);
  return buffers;
}

TEST(Recorder, HasNoStateWithoutASession) { EXPECT_EQ(recorder::this_thread(), nullptr); }

TEST(Recorder, MakesAStateForEachThreadOnce) {
  const auto recording = make_recording();
  recorder::publish(recording);
  ThreadState* here = recorder::this_thread();
  ASSERT_NE(here, nullptr);
  EXPECT_EQ(recorder::this_thread(), here);
  std::thread([&] {
    EXPECT_NE(recorder::this_thread(), nullptr);
    EXPECT_NE(recorder::this_thread(), here);
  }).join();
  const auto buffers = threads_of(*recording);
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0]->tid(), static_cast<std::uint64_t>(gettid()));
  EXPECT_NE(buffers[1]->tid(), buffers[0]->tid());
  EXPECT_FALSE(buffers[0]->retired());
  EXPECT_TRUE(buffers[1]->retired());  // the thread has ended
  recorder::withdraw();
  EXPECT_EQ(recorder::this_thread(), nullptr);
}

TEST(Recorder, TurnsTheFlagOffWithTheSession) {
  recorder::publish(make_recording());
  recorder::set_recording(true);
  EXPECT_EQ(detail::recording.load(), 1u);
  recorder::withdraw();
  EXPECT_EQ(detail::recording.load(), 0u);
}

TEST(Recorder, GivesEachSessionAStateOfItsOwn) {
  const auto first = make_recording();
  first->open_window();
  recorder::publish(first);
  const ThreadState::Place place = recorder::this_thread()->enter_scope(LayerId{1}, nullptr, 0);
  const auto first_buffer = threads_of(*first).at(0);
  recorder::withdraw();

  const auto second = make_recording();
  second->open_window();
  recorder::publish(second);
  ThreadState* state = recorder::this_thread();
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->recording(), second.get());
  EXPECT_TRUE(first_buffer->retired());
  const ThreadState::Place inside = state->enter_scope(LayerId{2}, nullptr, 0);
  ASSERT_EQ(inside.depth, place.depth);
  recorder::last_state()->leave(place, 0, false);  // the first session's scope ends only now
  EXPECT_EQ(state->depth(), 1u);
  state->leave(inside, 0, false);
  EXPECT_EQ(tally(test::take(*first_buffer)).ends, 0u);
  EXPECT_EQ(tally(test::take(*threads_of(*second).at(0))).ends, 1u);
  recorder::withdraw();
}

TEST(Recorder, LetsAScopeEndAfterTheSession) {
  const auto recording = make_recording();
  recording->open_window();
  recorder::publish(recording);
  const ThreadState::Place place = recorder::this_thread()->enter_scope(LayerId{1}, nullptr, 0);
  recorder::withdraw();
  ASSERT_NE(recorder::last_state(), nullptr);
  recorder::last_state()->leave(place, 0, false);
  EXPECT_EQ(tally(test::take(*threads_of(*recording).at(0))).ends, 1u);
}

TEST(Recorder, FreesARecordingThatNoThreadKnows) {
  std::weak_ptr<Recording> watched;
  {
    const auto recording = make_recording();
    watched = recording;
    recorder::publish(recording);
    std::thread([] { EXPECT_NE(recorder::this_thread(), nullptr); }).join();
    recorder::withdraw();
  }
  EXPECT_TRUE(watched.expired());
}

// A thread-local object of the user's that was made before layertrace's is destroyed after it.
struct LateHook {
  ~LateHook() {
    if (asked != nullptr)
      *asked = recorder::this_thread() == nullptr && recorder::last_state() == nullptr;
  }
  bool* asked = nullptr;
};
thread_local LateHook late_hook;

TEST(Recorder, RecordsNothingForAThreadThatIsEnding) {
  const auto recording = make_recording();
  recorder::publish(recording);
  bool none_at_the_end = false;
  std::thread([&] {
    late_hook.asked = &none_at_the_end;
    EXPECT_NE(recorder::this_thread(), nullptr);
  }).join();
  EXPECT_TRUE(none_at_the_end);
  EXPECT_EQ(threads_of(*recording).size(), 1u);
  recorder::withdraw();
}

TEST(Recorder, MeasuresOnTheSide) {
  {
    const recorder::Scratch scratch;
    ThreadState* state = recorder::this_thread();
    ASSERT_NE(state, nullptr);
    for (int i = 0; i < 1'000; ++i)
      state->leave(state->enter_scope(LayerId{0}, nullptr, 0), 0, false);
    std::thread([] { EXPECT_EQ(recorder::this_thread(), nullptr); }).join();
  }
  EXPECT_EQ(recorder::this_thread(), nullptr);
  recorder::publish(make_recording());
  EXPECT_NE(recorder::this_thread(), nullptr);
  recorder::withdraw();
}

TEST(Recorder, IsForgottenInAForkedChild) {
  const auto recording = make_recording();
  recording->open_window();
  recorder::publish(recording);
  recorder::set_recording(true);
  const ThreadState::Place place = recorder::this_thread()->enter_scope(LayerId{1}, nullptr, 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    recorder::forget_after_fork();
    bool right = detail::recording.load() == 0 && recorder::this_thread() == nullptr &&
                 recorder::last_state() == nullptr;
    const auto own = make_recording();  // the child may record for itself
    own->open_window();
    recorder::publish(own);
    ThreadState* state = recorder::this_thread();
    right = right && state != nullptr && state->recording() == own.get() && state->depth() == 0;
    recorder::withdraw();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  recorder::last_state()->leave(place, 0, false);  // the parent goes on as before
  EXPECT_EQ(tally(test::take(*threads_of(*recording).at(0))).records, 2u);
  recorder::withdraw();
}

// ---- Many threads ----

class Follower final : public KeepingConsumer {
 public:
  explicit Follower(Recording& recording) : recording_(recording) {}
  void refresh() override {
    for (auto& buffer : threads_of(recording_)) drain.add(std::move(buffer));
  }
  Drain drain{*this};

 private:
  Recording& recording_;
};

// One thread's work as hooks would do it; returns how many records they tried to write.
std::uint64_t run_scopes(int rounds) {
  std::uint64_t emitted = 0;
  for (int i = 0; i < rounds; ++i) {
    ThreadState* state = recorder::this_thread();
    if (state == nullptr) break;
    const auto scope = state->enter_scope(LayerId{1}, nullptr, 0);
    state->enter_op(NameId{1}, 0);
    const auto node = state->enter_node(NameId{2}, 0, 0, 0);
    if (i % 7 != 0) state->leave(node, 0, false);
    state->leave_op(&test::no_key);
    state->leave(scope, 0, i % 7 == 0);
    emitted += 6;
  }
  return emitted;
}

void expect_all_accounted_for(const Follower& follower, const Recording& recording,
                              std::uint64_t emitted) {
  EXPECT_EQ(follower.drain.recorded() + follower.drain.dropped() + recording.lost(), emitted);
  for (const auto& [lane, records] : follower.resolved) {
    const Tally read = tally(records);
    EXPECT_TRUE(read.nested);
    EXPECT_EQ(read.open, 0);
  }
}

TEST(Recorder, FollowsThreadsThatAreBornAndDie) {
  constexpr int kThreads = 16;
  const auto recording = make_recording(8);  // small: some is dropped, and counted
  recording->open_window();
  Follower follower(*recording);
  recorder::publish(recording);
  std::atomic<std::uint64_t> emitted{0};
  std::atomic<bool> done{false};
  std::thread program([&] {
    for (int born = 0; born < kThreads; born += 4) {
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) threads.emplace_back([&] { emitted += run_scopes(3'000); });
      for (std::thread& thread : threads) thread.join();
    }
    done = true;
  });
  while (!done) follower.drain.pump();
  program.join();
  recorder::withdraw();
  for (int i = 0; i < 2; ++i) follower.drain.pump();
  EXPECT_EQ(emitted.load(), kThreads * 3'000u * 6);
  EXPECT_EQ(follower.closed.size(), static_cast<std::size_t>(kThreads));
  expect_all_accounted_for(follower, *recording, emitted);
}

TEST(Recorder, IsStoppedFromAnotherThread) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 10; ++round) {
    const auto recording = make_recording(8);
    recording->open_window();
    Follower follower(*recording);
    recorder::publish(recording);
    std::atomic<std::uint64_t> emitted{0};
    std::latch all_run(kThreads + 1);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        std::uint64_t mine = run_scopes(1);
        all_run.arrive_and_wait();
        mine += run_scopes(1 << 30);  // until the session is gone
        emitted += mine;
      });
    }
    all_run.arrive_and_wait();
    for (int i = 0; i < 4; ++i) follower.drain.pump();
    recorder::withdraw();
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 2; ++i) follower.drain.pump();
    expect_all_accounted_for(follower, *recording, emitted);
  }
}

// The window changes under the feet of threads: begins without ends are all that may differ.
TEST(Recorder, ChangesWindowsWhileThreadsRun) {
  const auto recording = make_recording(64);
  recording->open_window();
  Follower follower(*recording);
  recorder::publish(recording);
  std::atomic<std::uint64_t> emitted{0};
  std::atomic<int> running{3};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      emitted += run_scopes(20'000);
      --running;
      EXPECT_EQ(recorder::this_thread()->depth(), 0u);
    });
  }
  while (running != 0) {
    recording->open_window();
    follower.drain.pump();
  }
  for (std::thread& thread : threads) thread.join();
  recorder::withdraw();
  for (int i = 0; i < 2; ++i) follower.drain.pump();
  for (const auto& [lane, records] : follower.resolved) EXPECT_TRUE(tally(records).nested);
  EXPECT_LE(follower.drain.recorded() + follower.drain.dropped(), emitted.load());
}

}  // namespace
}  // namespace layertrace
