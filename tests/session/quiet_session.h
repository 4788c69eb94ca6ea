// A session without any framework: hooks that do nothing, and records that the tests write
// themselves.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "capture/recorder.h"
#include "session/session_state.h"

namespace layertrace::test {

// Counts how often it is switched, so that a test can see that nothing stays on.
class QuietHooks final : public CaptureHooks {
 public:
  explicit QuietHooks(int* on) : on_(on) {}
  void enable(bool /*ops*/) noexcept override { ++*on_; }
  void disable() noexcept override { --*on_; }
  static std::uint64_t key() { return static_cast<std::uint64_t>(gettid()); }
  std::uint64_t (*thread_key() const)() override { return &key; }
  double measure_op_cost() override { return 100; }
  std::string framework_version() const override { return "none"; }
  std::vector<std::string> notes() const override {
    if (no_memory_for_notes) throw std::bad_alloc();
    return {};
  }
  static inline bool no_memory_for_notes = false;

 private:
  int* on_;
};

class SessionTest : public testing::Test {
 protected:
  Result<std::shared_ptr<SessionState>> start(Options options = {}) {
    return SessionState::start(
        std::move(options), std::make_unique<QuietHooks>(&hooks_on_), [](Recording& recording) {
          recording.definitions().add_layer({.path = "", .name = "Net", .type = "Net"});
          recording.definitions().add_layer(
              {.path = "a", .name = "a", .type = "Linear", .parent = LayerId{0}});
        });
  }

  // One call of the root with one of `a` inside, as hooks would write it. Returns how many records
  // that tries to write.
  static std::uint64_t call_model() {
    if (detail::recording.load() == 0) return 0;
    ThreadState* thread = recorder::this_thread();
    if (thread == nullptr) return 0;
    const auto root = thread->enter_scope(LayerId{0}, nullptr, 0);
    const auto child = thread->enter_scope(LayerId{1}, nullptr, 0);
    thread->leave(child, 0, false);
    thread->leave(root, 0, false);
    return 4;
  }

  std::string file(const std::string& name) { return (folder_ / name).string(); }

  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("session_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    EXPECT_EQ(hooks_on_, 0) << "the hooks are still on";
    EXPECT_EQ(detail::recording.load(), 0U);
    std::filesystem::remove_all(folder_);
  }

  int hooks_on_ = 0;
  std::filesystem::path folder_;
};

inline std::vector<std::uint64_t> step_indices(const Profile& profile) {
  std::vector<std::uint64_t> indices;
  for (const Step& step : profile.steps) indices.push_back(step.index);
  return indices;
}

}  // namespace layertrace::test
