// The engine's own record of each node, and how it is spared.
//
// While anybody listens to operators, autograd's engine makes a record of each node, too, under a
// name that it puts together for it: a microsecond and more, for what we see ourselves. Where
// nobody but us listens, a pass runs with records switched off, and each node's evaluation switches
// them on again for what it does.
#pragma once

#include <torch/csrc/autograd/graph_task.h>

#include <atomic>

namespace layertrace {

// One call of the engine, from here to the end of the block, on its thread.
class Pass {
 public:
  Pass() noexcept;
  ~Pass();
  Pass(const Pass&) = delete;  // it stands for a stretch of one thread's stack
  Pass& operator=(const Pass&) = delete;

  // The thread's innermost pass has made this task, of which nothing has run yet: spares its
  // records if it can.
  static void begin(torch::autograd::GraphTask& task) noexcept;

 private:
  std::atomic<const torch::autograd::GraphTask*>* slot_ = nullptr;
  Pass* const outer_;
};

// Before a node is evaluated: its operators are recorded. The engine itself restores the thread's
// state after each node.
void resume_records(const torch::autograd::GraphTask& task) noexcept;

}  // namespace layertrace
