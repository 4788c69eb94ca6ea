// A small training program that goes wrong on demand, with a session running. The tests beside it
// run it and look at what it leaves behind.
//
//   fault_victim MODE [ARGUMENT…]
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "victim.h"

namespace victim {

NetImpl::NetImpl() {
  fc1 = register_module("fc1", torch::nn::Linear(16, 16));
  fc2 = register_module("fc2", torch::nn::Linear(16, 4));
}

torch::Tensor NetImpl::forward(const torch::Tensor& x) {
  layertrace::ModuleScope scope(this);
  return fc2(torch::relu(fc1(x)));
}

void say_profile(const Profile& profile) {
  const auto& health = profile.health;
  say("steps", profile.step_count);
  say("layers", profile.layers.size());
  say("emitted", health.emitted);
  say("recorded", health.recorded);
  say("dropped", health.dropped);
  say("thrown_scopes", health.thrown_scopes);
  say("cut_scopes", health.cut_scopes);
  say("activities", health.activities);
}

Session must_start(torch::nn::Module& model, Options options) {
  auto session = Session::start(model, std::move(options));
  if (!session) {
    say("start", outcome(session));
    std::_Exit(99);
  }
  return std::move(*session);
}

Trainer::Trainer(Net model)
    : model_(std::move(model)),
      optimizer_(model_->parameters(), 1e-3),
      input_(torch::ones({4, 16})) {
  step();  // the first makes the gradients; all others are alike
}

void Trainer::step() {
  optimizer_.zero_grad();
  model_->forward(input_).sum().backward();
  optimizer_.step();
}

void enter_scope_pairs(const Net& model, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const layertrace::ModuleScope outer(model.get());
    const layertrace::ModuleScope inner(model->fc1.get());
  }
}

void wait_until_quiet(const std::string& path) {
  constexpr int kPolls = 600;
  constexpr int kQuietPolls = 8;
  constexpr useconds_t kPollMicroseconds = 50'000;
  off_t size = -1;
  int quiet = 0;
  for (int poll = 0; poll < kPolls && quiet < kQuietPolls; ++poll) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) status.st_size = -1;
    quiet = status.st_size == size ? quiet + 1 : 0;
    size = status.st_size;
    ::usleep(kPollMicroseconds);
  }
}

}  // namespace victim

int main(int argc, char** argv) {
  using namespace victim;
  torch::set_num_threads(1);  // a forked child has none of the others
  const Arguments arguments(argv + std::min(argc, 2), argv + argc);
  for (const auto modes : {end_modes(), limit_modes(), process_modes(), module_modes()}) {
    for (const Mode& mode : modes) {
      if (argc > 1 && std::string_view(argv[1]) == mode.name) return mode.run(arguments);
    }
  }
  std::cerr << "fault_victim: no such mode\n";
  return 98;
}
