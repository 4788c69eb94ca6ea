// The memory cap holds, whoever writes how much, and nothing stays behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "perfetto/trace_reader.h"
#include "session/pipeline.h"
#include "session/quiet_session.h"

namespace layertrace {
namespace {

using test::SessionTest;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Shadow memory and quarantines are many times as much; and ten times as slow.
constexpr bool kMemoryIsTheProgramsOwn = false;
constexpr int kMuch = 1;
#else
constexpr bool kMemoryIsTheProgramsOwn = true;
constexpr int kMuch = 10;
#endif

std::size_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoul(line.substr(key.size())) << 10;
  }
  return 0;
}

// How far the process's memory has risen above where it was, at its highest.
class Rise {
 public:
  Rise() {
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak counts from here
    before_ = status_bytes("VmRSS:");
  }
  std::size_t bytes() const {
    const std::size_t peak = status_bytes("VmHWM:");
    return peak > before_ ? peak - before_ : 0;
  }

 private:
  std::size_t before_ = 0;
};

// What threads take besides their records: four stacks and their allocators' arenas, pages that the
// first use of a library function touches. Measured without a session: below 1 MiB.
constexpr std::size_t kThreadsTake = std::size_t{2} << 20;

template <typename Work>
void run_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

class Memory : public SessionTest {};

TEST_F(Memory, StaysBelowTheCap) {
  for (const std::size_t cap : {std::size_t{4} << 20, std::size_t{32} << 20}) {
    std::uint64_t emitted = 2;  // the window's mark and the step's
    std::atomic<std::uint64_t> by_threads{0};
    const Rise rise;
    auto session = start({.output = file("run.pftrace"), .memory_cap_bytes = cap});
    ASSERT_TRUE(session);
    run_threads(4, [&by_threads] {
      std::uint64_t mine = 0;
      for (int i = 0; i < 20'000 * kMuch; ++i) mine += call_model();
      by_threads += mine;
    });
    (*session)->step();
    const auto profile = (*session)->stop();
    const std::size_t risen = rise.bytes();
    ASSERT_TRUE(profile) << profile.error().message();
    emitted += by_threads;
    EXPECT_EQ(profile->health.recorded + profile->health.dropped, emitted);
    EXPECT_EQ(profile->health.emitted, emitted);
    if (kMemoryIsTheProgramsOwn) {
      EXPECT_LE(risen, cap + cap / 10 + kThreadsTake);
    }
  }
}

// Sums up the gaps that a trace tells of.
class GapCounter final : public SpanSink {
 public:
  void open_lane(Lane /*lane*/, std::uint64_t /*tid*/, const std::string& /*name*/) override {}
  void begin(Lane /*lane*/, const SpanBegin& /*span*/) override { ++spans; }
  void end(Lane /*lane*/, Track /*track*/, std::uint64_t /*end_ns*/, EndedBy by) override {
    if (by == EndedBy::kCut) ++cut;
  }
  void window(Lane /*lane*/, std::uint64_t /*ns*/, bool /*on*/, std::uint64_t /*step*/) override {}
  void step(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*index*/) override {}
  void gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t count) override { dropped += count; }

  std::uint64_t spans = 0;
  std::uint64_t cut = 0;
  std::uint64_t dropped = 0;
};

// Nobody reads for as long as the program runs: it is not held up, and all is accounted for.
TEST_F(Memory, StaysBelowTheCapWhenNobodyReads) {
  constexpr std::size_t kChunks = 48;
  const auto output = OutputFile::create(file("run.pftrace"), 1 << 20);
  ASSERT_TRUE(output);
  const auto recording = std::make_shared<Recording>(kChunks, &test::QuietHooks::key);
  recording->definitions().add_layer({.path = "", .type = "Net"});
  recording->definitions().add_layer({.path = "a"});
  Pipeline pipeline(recording, **output, {}, TickScale::measure(), 1'000);
  const Rise rise;
  recording->open_window();
  recorder::publish(recording);
  recorder::set_recording(true);
  recorder::this_thread()->mark(RecordKind::kWindow, 0, 1);
  std::atomic<std::uint64_t> emitted{1};
  run_threads(4, [&emitted] {
    std::uint64_t mine = 0;
    for (int i = 0; i < 100'000; ++i) mine += call_model();
    emitted += mine;
  });
  const std::size_t risen = rise.bytes();
  recorder::withdraw();
  const Profile profile = pipeline.finish(clock_ticks(), {});
  ASSERT_TRUE((*output)->commit());

  const Health& health = profile.health;
  EXPECT_GT(health.dropped, health.recorded);
  EXPECT_EQ(health.recorded + health.dropped, emitted.load());
  EXPECT_EQ(health.cut_scopes, 0u);  // what was kept is whole
  if (kMemoryIsTheProgramsOwn) {
    EXPECT_LE(risen, kChunks * sizeof(Chunk) * 11 / 10 + kThreadsTake);
  }
  // The place of every loss is in the trace.
  Dictionary dictionary;
  GapCounter gaps;
  ASSERT_TRUE(read_trace(file("run.pftrace"), dictionary, gaps));
  EXPECT_EQ(gaps.dropped, health.dropped);
  EXPECT_EQ(gaps.spans, (health.recorded - 1) / 2);
  EXPECT_EQ(gaps.cut, 0u);
}

TEST_F(Memory, IsGivenBackAfterEachSession) {
  const auto once = [this] {
    auto session = start({.memory_cap_bytes = std::size_t{8} << 20});
    ASSERT_TRUE(session) << session.error().message();
    run_threads(2, [] {
      for (int i = 0; i < 3'000; ++i) call_model();
    });
    (*session)->step();
    ASSERT_TRUE((*session)->stop());
  };
  for (int i = 0; i < 2 * kMuch; ++i) once();
  const std::size_t before = status_bytes("VmRSS:");
  for (int i = 0; i < 6 * kMuch; ++i) once();
  const std::size_t after = status_bytes("VmRSS:");
  if (kMemoryIsTheProgramsOwn) {
    EXPECT_LE(after, before + (std::size_t{1} << 20));
  }
}

// A thread for each batch, as some loaders start them: the drain lets go of each.
TEST_F(Memory, IsNotKeptForThreadsThatEnded) {
  auto session = start({.memory_cap_bytes = std::size_t{4} << 20});
  ASSERT_TRUE(session);
  std::atomic<std::uint64_t> emitted{0};
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      run_threads(1, [&emitted] {
        for (int call = 0; call < 10; ++call) emitted += call_model();
      });
      if (i % 50 == 0) (*session)->step();
    }
  };
  run(500);
  const std::size_t before = status_bytes("VmRSS:");
  run(2'000);
  const std::size_t after = status_bytes("VmRSS:");
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.emitted, emitted.load() + 51);  // and the marks
  if (kMemoryIsTheProgramsOwn) {
    EXPECT_LE(after, before + (std::size_t{4} << 20));
  }
}

}  // namespace
}  // namespace layertrace
