// A random program: threads that call modules, make autograd nodes and run them, raise and recurse.
// While it runs it writes down, from its own call stacks alone, whose each node and operator is: an
// answer to compare attribution with, found without any of its code.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "attribute/records.h"

namespace layertrace::test {

class RandomProgram {
 public:
  // Whose something is: a layer and the calls around it, or the reason why there is none.
  struct Owner {
    LayerId layer = kNoLayer;
    Cause cause = Cause::kNone;
    std::vector<LayerId> chain = {};  // the calls around a node, outermost first
    std::vector<std::uint64_t> calls = {};
  };
  struct Expected {
    Owner owner;
    Lane lane = 0;
    bool accumulates = false;
    std::uint64_t sequence = 0;
  };

  explicit RandomProgram(unsigned seed) : random_(seed), script(make_paths()) {
    add_parameters();
    const std::uint64_t threads = 1 + below(3);
    for (std::uint64_t i = 0; i < threads; ++i)
      threads_.push_back({&script.thread(10 + 7 * i), {}});
    threads_[0].out->on(tick());
    const std::uint64_t actions = 100 + below(900);
    for (std::uint64_t i = 0; i < actions; ++i) act(threads_[below(threads_.size())]);
    for (Thread& thread : threads_) {
      while (!thread.stack.empty()) close(thread, false);
    }
    threads_[0].out->step(tick(), steps_++);
  }

  std::uint64_t end() const { return clock_ + 1; }
  bool has_one_thread() const { return threads_.size() == 1; }

 private:
  enum class Kind { kScope, kNode, kRegion, kOp };
  struct Frame {
    Kind kind;
    Owner owner;             // of what runs or is made directly inside
    bool has_phase = false;  // a region of the engine's or the optimizer's
    std::uint64_t began = 0;
    bool composite = false;  // of an operator
    bool has_children = false;
  };
  struct Thread {
    ThreadScript* out;
    std::vector<Frame> stack;
    std::uint64_t calls = 0;
    bool told_sequence = false;
  };
  struct Made {
    std::uint64_t key;
    std::uint64_t sequence;
    Owner owner;
  };

  std::mt19937_64 random_;
  std::uint64_t clock_ = 0;
  std::vector<Thread> threads_;
  std::vector<Made> pool_;  // every node that was made
  std::uint64_t steps_ = 0;
  std::map<std::uint64_t, LayerId> parameters_;
  std::vector<std::string> paths_;

 public:
  // By the time of their begin, which no two share.
  std::map<std::uint64_t, Expected> nodes;
  std::map<std::uint64_t, Expected> activities;
  Script script;

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  std::uint64_t tick() { return clock_ += 1 + below(5); }

  std::vector<std::string> make_paths() {
    paths_ = {""};
    const std::uint64_t count = 2 + below(12);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string& parent = paths_[below(paths_.size())];
      paths_.push_back((parent.empty() ? "" : parent + ".") + "m" + std::to_string(i));
    }
    std::vector<std::string> all = paths_;
    all.emplace_back("(Alone)");  // a module that is not registered
    paths_ = all;
    return all;
  }

  void add_parameters() {
    for (std::uint64_t address = 1'000; address < 1'020; ++address) {
      const std::string& path = paths_[below(paths_.size() - 1)];
      script.add_parameter(address, path);
      parameters_.emplace(address, script.layer(path));
      if (chance(20)) script.add_parameter(address, paths_[below(paths_.size() - 1)]);  // tied
    }
  }

  void act(Thread& thread) {
    const std::uint64_t choice = below(100);
    const bool in_op = !thread.stack.empty() && thread.stack.back().kind == Kind::kOp;
    if (choice < 22 && thread.stack.size() < 12) {
      enter(thread);
    } else if (choice < 36) {
      make_nodes(thread);
    } else if (choice < 48 && thread.stack.size() < 12) {
      begin_op(thread);
    } else if (choice < 52 && thread.stack.size() < 12) {
      begin_region(thread);
    } else if (choice < 66 && thread.stack.size() < 12) {
      begin_node(thread);
    } else if (choice < 68 && &thread == &threads_[0] && !in_op) {
      thread.out->step(tick(), steps_++);
    } else if (choice < 71) {
      for (std::uint64_t frames = 1 + below(4); frames != 0 && !thread.stack.empty(); --frames) {
        close(thread, /*thrown=*/true);  // an exception that is caught further out
      }
    } else if (!thread.stack.empty()) {
      close(thread, false);
    }
  }

  void push(Thread& thread, Frame frame) {
    if (!thread.stack.empty()) thread.stack.back().has_children = true;
    frame.began = clock_;
    thread.stack.push_back(std::move(frame));
  }

  // The innermost scope or node: what an autograd node that is made now belongs to.
  const Frame* maker(const Thread& thread) const {
    for (std::size_t i = thread.stack.size(); i-- != 0;) {
      const Kind kind = thread.stack[i].kind;
      if (kind == Kind::kScope || kind == Kind::kNode) return &thread.stack[i];
    }
    return nullptr;
  }

  void enter(Thread& thread) {
    const std::string& path = paths_[below(paths_.size())];
    Owner owner{.layer = script.layer(path)};
    if (const Frame* around = maker(thread); around != nullptr && around->kind == Kind::kScope) {
      owner.chain = around->owner.chain;
      owner.calls = around->owner.calls;
    }
    owner.chain.push_back(owner.layer);
    owner.calls.push_back((std::uint64_t{thread.out->lane()} + 1) << 40 | ++thread.calls);
    thread.out->enter(tick(), path);
    thread.told_sequence = true;
    push(thread, {.kind = Kind::kScope, .owner = std::move(owner)});
  }

  void make_nodes(Thread& thread) {
    const Frame* around = maker(thread);
    for (std::uint64_t count = 1 + below(3); count != 0; --count) {
      Owner owner{.cause = thread.told_sequence ? Cause::kMadeOutside : Cause::kMadeBefore};
      if (around != nullptr) owner = around->owner;
      pool_.push_back({thread.out->key(), thread.out->sequence(), std::move(owner)});
      thread.out->make(1);
    }
  }

  void begin_region(Thread& thread) {
    const bool backward = chance(50);
    Frame frame{.kind = Kind::kRegion, .owner = {}, .has_phase = backward};
    if (backward) {
      thread.out->backward(tick());
    } else {
      thread.out->region(tick(), "users");
      frame.owner.layer = layer_of_ops(thread);
    }
    thread.told_sequence = true;
    push(thread, std::move(frame));
  }

  void begin_node(Thread& thread) {
    if (chance(5)) {
      thread.out->engine_root(tick()).end(tick());
      thread.told_sequence = true;
      if (!thread.stack.empty()) thread.stack.back().has_children = true;
      return;
    }
    Expected expected;
    expected.lane = thread.out->lane();
    if (chance(25)) {
      const std::uint64_t address = 1'000 + below(23);  // some are nobody's
      const auto known = parameters_.find(address);
      expected.accumulates = true;
      if (known != parameters_.end()) {
        expected.owner.layer = known->second;
      } else {
        expected.owner.cause = Cause::kForeignLeaf;
      }
      thread.out->accumulate(tick(), address);
    } else if (chance(3)) {
      expected.owner.cause = Cause::kUnknownThread;
      expected.sequence = 5;
      thread.out->node_of(tick(), "OfAStranger", 5, 999);
    } else if (!pool_.empty()) {
      // Mostly the newest first, as a backward does; some are run again, as a kept graph's are.
      const std::size_t back = std::min<std::size_t>(pool_.size() - 1, below(1 + below(20)));
      const std::size_t pick = pool_.size() - 1 - back;
      expected.owner = pool_[pick].owner;
      expected.sequence = pool_[pick].sequence;
      thread.out->node_of(tick(), "Backward0", pool_[pick].sequence, pool_[pick].key);
      if (chance(80)) pool_.erase(pool_.begin() + static_cast<std::ptrdiff_t>(pick));
    } else {
      return;
    }
    thread.told_sequence = true;
    nodes.emplace(clock_, expected);
    // What a parameter's node makes is its layer's; no calls are known.
    push(thread, {.kind = Kind::kNode, .owner = expected.owner});
  }

  // What an operator that begins now belongs to: the innermost frame that is not an operator.
  LayerId layer_of_ops(const Thread& thread) const {
    for (std::size_t i = thread.stack.size(); i-- != 0;) {
      if (thread.stack[i].kind == Kind::kOp) continue;
      return thread.stack[i].has_phase ? kNoLayer : thread.stack[i].owner.layer;
    }
    return kNoLayer;
  }

  void begin_op(Thread& thread) {
    const bool composite = chance(40);
    Frame frame{.kind = Kind::kOp, .owner = {}, .composite = composite};
    frame.owner.layer = layer_of_ops(thread);
    thread.out->begin_op(tick(), composite ? "composite" : "kernel", composite);
    push(thread, std::move(frame));
  }

  void close(Thread& thread, bool thrown) {
    const Frame frame = thread.stack.back();
    thread.stack.pop_back();
    const std::uint64_t at = tick();
    switch (frame.kind) {
      case Kind::kScope:
        thrown ? thread.out->leave_thrown(at) : thread.out->leave(at);
        break;
      case Kind::kNode:
        thread.out->end(at);
        break;
      case Kind::kRegion:
        thread.out->end_region(at);
        break;
      case Kind::kOp:
        thread.out->end_op(at);
        if (!frame.composite || !frame.has_children) {
          activities.emplace(frame.began,
                             Expected{.owner = frame.owner, .lane = thread.out->lane()});
        }
        break;
    }
  }
};

}  // namespace layertrace::test
