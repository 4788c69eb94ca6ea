// CUPTI's buffers: a few that go round. It takes them from us on threads of the program or of its
// own, and gives them back filled.
//
// Its callbacks are the process's: a client that was there before us may have left it a buffer, and
// that comes to us, too. It stays its owner's, who may do with it what it likes once it has been
// handed over: so what it holds is copied there and then.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace layertrace::cuda {

class CuptiBuffers {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMost = 64;

  struct Filled {
    std::uint8_t* data;
    std::size_t bytes;
    bool is_copy = false;  // of somebody else's
  };

  // One for the process, as CUPTI has one client.
  static CuptiBuffers& instance();

  // ---- For CUPTI ----

  struct Lent {
    std::uint8_t* data = nullptr;
    std::size_t bytes = 0;
  };
  // When all are in use: nothing, or what will not be read. Both are counted.
  Lent take() noexcept;
  void give_back(std::uint8_t* data, std::size_t bytes) noexcept;

  // ---- For the one who reads them ----

  std::vector<Filled> take_filled();
  void reuse(const std::vector<Filled>& buffers);
  // What comes while nobody wants it goes back unread, and is freed. `always`: CUPTI does not bear
  // to be given none.
  void want(bool wanted, bool always = false) noexcept;
  // Waits until CUPTI holds no buffer in which it has written, for so long at most: one in which it
  // has not it may keep for what comes next. How many it still has; they are told once.
  std::size_t wait_for_all(std::chrono::milliseconds longest);

  // Since the process began.
  std::uint64_t lost() const noexcept { return lost_.load(); }
  std::uint64_t refused() const noexcept { return refused_.load(); }

 private:
  void forget(std::uint8_t* data) noexcept;
  void take_copy(const std::uint8_t* data, std::size_t bytes);
  struct Out {
    std::uint8_t* data = nullptr;
    bool is_spare = false;   // not of those that go round; what it holds is not read
    bool is_missed = false;  // it was waited for in vain
  };
  // Was it with CUPTI? Then it no longer is.
  std::optional<Out> take_back(const std::uint8_t* data) noexcept;
  static bool is_awaited(const Out& out) noexcept;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::uint8_t*> free_;
  std::vector<Filled> filled_;
  std::size_t made_ = 0;
  std::vector<Out> out_;  // with CUPTI
  std::size_t copies_ = 0;
  bool wanted_ = false;
  bool always_ = false;
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace layertrace::cuda
