// What all modes of the victim share: a model that starts fast, a training step, and words for the
// test that watches.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

namespace victim {

using layertrace::Options;
using layertrace::Profile;
using layertrace::Result;
using layertrace::Session;

struct NetImpl : torch::nn::Module {
  NetImpl();
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(Net);

// One "key value" line on stdout, at once: the test may be waiting for it, and the program may die
// next.
template <typename T>
void say(std::string_view key, const T& value) {
  std::cout << key << ' ' << value << std::endl;
}

// The error's one-line message, or "ok".
template <typename T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : result.error().message();
}

// Says the figures of a profile that tests compare.
void say_profile(const Profile& profile);

// A session that must start; else the program ends with code 99.
Session must_start(torch::nn::Module& model, Options options);

// Forward, backward and an optimizer's step.
class Trainer {
 public:
  explicit Trainer(Net model);
  void step();

 private:
  Net model_;
  torch::optim::SGD optimizer_;
  torch::Tensor input_;
};

// Enters and leaves `count` scopes, two deep. Four records each, and nothing else when operators
// are not recorded.
inline constexpr std::uint64_t kRecordsPerPair = 4;
void enter_scope_pairs(const Net& model, std::uint64_t count);

// Waits until the file has not grown for a while (the writer has caught up), or for at most 30 s.
void wait_until_quiet(const std::string& path);

using Arguments = std::vector<std::string>;
struct Mode {
  const char* name;
  int (*run)(const Arguments& arguments);
};

std::span<const Mode> end_modes();
std::span<const Mode> limit_modes();
std::span<const Mode> process_modes();
std::span<const Mode> module_modes();

}  // namespace victim
