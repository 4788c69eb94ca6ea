// The batch or instance norm whose forward is running on this thread: its scope was opened by one
// function and will be closed by another (see interposed_norms.cc).
#pragma once

#include <cstdint>

#include "torch/scopes.h"

namespace layertrace {

struct OpenNorm {
  enum class Awaited : std::uint8_t { kNothing, kBatchNorm, kInstanceNorm, kSqueeze };

  Awaited awaited = Awaited::kNothing;  // the call that ends the norm's forward
  bool squeezes = false;                // and after that, a squeeze
  const torch::nn::Module* module = nullptr;
  detail::Entry entry;
  detail::CountedCall* call = nullptr;
};
extern thread_local OpenNorm open_norm __attribute__((tls_model("initial-exec")));

// Its scope is the innermost of the thread. False where the one around it was left by an exception,
// and closed both.
bool is_on_top(const OpenNorm& norm) noexcept;

void close_abandoned_norm_slow() noexcept;

namespace detail {
// One that an exception has left, unseen.
void abandon_call(CountedCall* call) noexcept;
}  // namespace detail

// For whoever opens a scope, region or node: none of them can be inside a norm. One that is still
// open was left by an exception that the program has caught.
inline void close_abandoned_norm() noexcept {
  if (open_norm.awaited != OpenNorm::Awaited::kNothing) [[unlikely]]
    close_abandoned_norm_slow();
}

}  // namespace layertrace
