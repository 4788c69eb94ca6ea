// A session that finds models and steps by itself, in a program that was not changed: what
// `layertrace run` puts into a LibTorch program by preloading this library.
//
// Models show in the calls by which programs handle them: train(), to(), parameters(). The session
// starts at the first layer's forward. Steps are the optimizers'.
#pragma once

#include <atomic>

namespace torch::nn {
class Module;
}

namespace layertrace::auto_session {

// Nothing here does anything unless this is set; it is set before main().
extern std::atomic<bool> armed;
// Until the first layer is called, which starts the session: later ones tell nothing new.
extern std::atomic<bool> waiting;

void meet_model(const torch::nn::Module& module) noexcept;
void meet_layer() noexcept;
void end_optimizer_step(const void* optimizer) noexcept;

// In the functions that stand in for LibTorch's.
inline void on_model(const torch::nn::Module& module) noexcept {
  if (armed.load(std::memory_order_relaxed)) [[unlikely]]
    meet_model(module);
}
inline void on_layer() noexcept {
  if (waiting.load(std::memory_order_relaxed)) [[unlikely]]
    meet_layer();
}
inline void on_optimizer_step(const void* optimizer) noexcept {
  if (armed.load(std::memory_order_relaxed)) [[unlikely]]
    end_optimizer_step(optimizer);
}

}  // namespace layertrace::auto_session
