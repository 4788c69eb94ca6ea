// A client of CUPTI: collects the records of some kinds, from when it is made until it goes.
#pragma once

#include <cupti.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

class Recording {
 public:
  struct Buffers {
    std::size_t bytes = std::size_t{1} << 20;
    std::size_t most_records = 0;
  };

  explicit Recording(std::initializer_list<CUpti_ActivityKind> kinds)
      : Recording(kinds, Buffers()) {}
  Recording(std::initializer_list<CUpti_ActivityKind> kinds, Buffers buffers) : kinds_(kinds) {
    {
      const std::lock_guard lock(state().mutex);
      state().buffers = buffers;
      state().declines = false;
    }
    EXPECT_EQ(cuptiActivityRegisterCallbacks(request, complete), CUPTI_SUCCESS);
    flush();
    take_dropped();
    clear();
    for (const CUpti_ActivityKind kind : kinds_)
      EXPECT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS) << kind;
  }
  ~Recording() {
    for (const CUpti_ActivityKind kind : kinds_)
      EXPECT_EQ(cuptiActivityDisable(kind), CUPTI_SUCCESS) << kind;
    flush();
    clear();
  }
  Recording(const Recording&) = delete;  // CUPTI has one client
  Recording& operator=(const Recording&) = delete;

  static void flush(std::uint32_t flags = 0) {
    EXPECT_EQ(cuptiActivityFlushAll(flags), CUPTI_SUCCESS);
  }
  // Whether requests for buffers are declined from now on.
  void decline(bool declines) const { state().declines = declines; }
  std::size_t take_dropped() const {
    std::size_t dropped = 0;
    EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
    return dropped;
  }

  // What was delivered of a kind, in its order.
  template <typename Record>
  std::vector<Record> of(CUpti_ActivityKind kind) const {
    std::vector<Record> records;
    const std::lock_guard lock(state().mutex);
    for (const CUpti_Activity* record : state().records) {
      if (record->kind == kind) records.push_back(*reinterpret_cast<const Record*>(record));
    }
    return records;
  }
  std::vector<CUpti_ActivityMemcpy6> copies() const {
    return of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  }
  std::vector<CUpti_ActivityMemset4> sets() const {
    return of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  }
  std::vector<CUpti_ActivityKernel11> kernels() const {
    return of<CUpti_ActivityKernel11>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  // The calls of one function of the runtime.
  std::vector<CUpti_ActivityAPI> calls(CUpti_CallbackId function) const {
    return calls(CUPTI_ACTIVITY_KIND_RUNTIME, function);
  }
  std::vector<CUpti_ActivityAPI> calls(CUpti_ActivityKind api, CUpti_CallbackId function) const {
    std::vector<CUpti_ActivityAPI> found;
    for (const CUpti_ActivityAPI& each : of<CUpti_ActivityAPI>(api)) {
      if (each.cbid == function) found.push_back(each);
    }
    return found;
  }
  std::size_t count() const {
    const std::lock_guard lock(state().mutex);
    return state().records.size();
  }
  // How many records came in each buffer.
  std::vector<std::size_t> counts_by_buffer() const {
    const std::lock_guard lock(state().mutex);
    return state().counts;
  }
  // Those that buffers were given back on.
  std::set<std::thread::id> threads() const {
    const std::lock_guard lock(state().mutex);
    return state().threads;
  }

 private:
  // CUPTI tells its callbacks nothing of who registered them.
  struct State {
    std::mutex mutex;
    Buffers buffers;
    std::atomic<bool> declines = false;
    std::vector<std::uint8_t*> memory;  // that records are in
    std::vector<const CUpti_Activity*> records;
    std::vector<std::size_t> counts;
    std::set<std::thread::id> threads;
  };
  static State& state() {
    static State instance;
    return instance;
  }

  static void clear() {
    const std::lock_guard lock(state().mutex);
    for (std::uint8_t* memory : state().memory) std::free(memory);
    state().memory.clear();
    state().records.clear();
    state().counts.clear();
    state().threads.clear();
  }

  static void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    const std::lock_guard lock(state().mutex);
    *buffer = nullptr;
    *size = *most = 0;
    if (state().declines) return;
    *size = state().buffers.bytes;
    *most = state().buffers.most_records;
    *buffer = static_cast<std::uint8_t*>(std::malloc(*size));
  }

  static void CUPTIAPI complete(CUcontext /*context*/, std::uint32_t /*stream*/,
                                std::uint8_t* buffer, std::size_t /*size*/, std::size_t valid) {
    const std::lock_guard lock(state().mutex);
    state().threads.insert(std::this_thread::get_id());
    state().memory.push_back(buffer);
    std::size_t count = 0;
    CUpti_Activity* record = nullptr;
    CUptiResult result = CUPTI_SUCCESS;
    while ((result = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS) {
      state().records.push_back(record);
      ++count;
    }
    EXPECT_EQ(result, CUPTI_ERROR_MAX_LIMIT_REACHED);
    state().counts.push_back(count);
  }

  std::vector<CUpti_ActivityKind> kinds_;
};
