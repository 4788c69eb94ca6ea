#include <torch/nn/module.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <layertrace/layertrace.h>

#include "capture/device.h"
#include "session/session_state.h"
#include "torch/cuda_devices.h"
#include "torch/libtorch_modules.h"
#include "torch/module_registry.h"
#include "torch/session_starter.h"
#include "torch/torch_hooks.h"

namespace layertrace {

namespace {

// What is wrong with the names or modules, if anything is.
std::optional<Error> refuse(const binding::Models& models) {
  const auto error = [](std::string cause, std::string remedy) {
    return Error{"cannot start a session", std::move(cause), std::move(remedy)};
  };
  std::set<std::string_view> names;
  for (const auto& [name, module] : models) {
    if (!names.insert(name).second)
      return error("two models are called '" + name + "'", "Give each model its own name");
    if (module == nullptr) {
      return error(name.empty() ? "the model is null" : "the model '" + name + "' is null",
                   "Give it a module");
    }
    if (name.find('.') != std::string::npos) {
      return error("the model's name '" + name + "' has a dot",
                   "Dots part the names in a layer's path: leave them out");
    }
    if (models.size() > 1 && name.empty())
      return error("one of several models has no name", "Give each model a name");
  }
  return std::nullopt;
}

// On a machine without a GPU there is nothing to record, and nothing to say; but a tool may want to
// see layers all the same.
Result<DeviceParts> find_device(const DeviceRequest& request) {
  if (has_cuda_device()) {
    DeviceRequest with_streams = request;
    with_streams.current_stream = &current_cuda_stream;
    return make_device_parts(with_streams);
  }
  if (request.require_gpu) {
    return Error{"cannot record what the GPU does", "PyTorch sees no CUDA device",
                 "`layertrace doctor` tells what is missing"};
  }
  DeviceParts parts;
  if (request.nvtx) parts.marks = make_range_marks(*request.definitions);
  return parts;
}

}  // namespace

Result<Session> SessionStarter::start(std::shared_ptr<binding::ModuleSource> source,
                                      const binding::Models& models, Options options) {
  if (auto error = refuse(models)) return *error;
  auto hooks = std::make_unique<TorchHooks>();
  TorchHooks& torch_hooks = *hooks;
  const auto define = [&](Recording& recording) {
    auto registry = std::make_shared<ModuleRegistry>(recording.definitions(), std::move(source));
    for (const auto& [name, module] : models) registry->add_root(name, module);
    torch_hooks.use(std::move(registry));
  };
  auto state = SessionState::start(std::move(options), std::move(hooks), define, &find_device);
  if (!state) return state.error();
  return Session(std::move(*state));
}

Result<Session> Session::start(torch::nn::Module& model, Options options) {
  return start({{"", &model}}, std::move(options));
}

Result<Session> Session::start(
    const std::vector<std::pair<std::string, torch::nn::Module*>>& models, Options options) {
  const auto is_meta = [](const auto& model) {
    if (model.second == nullptr) return false;
    const auto parameters = model.second->parameters();
    return !parameters.empty() && parameters.front().is_meta();
  };
  options.meta |= options.summary && std::ranges::any_of(models, is_meta);
  return SessionStarter::start(std::make_shared<LibTorchModules>(),
                               binding::Models(models.begin(), models.end()), std::move(options));
}

Session::Session(std::shared_ptr<SessionState> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

namespace {
Error moved_from() {
  return {"cannot use the session", "it was moved from", "Use the session that it was moved to"};
}
}  // namespace

void Session::step() noexcept {
  if (state_ != nullptr) state_->step();
}
Result<Profile> Session::stop() { return state_ != nullptr ? state_->stop() : moved_from(); }
Result<Profile> Session::profile() const {
  return state_ != nullptr ? state_->profile() : moved_from();
}
Result<void> Session::add_metric(const MetricValue& metric) {
  return state_ != nullptr ? state_->add_metric(metric) : Result<void>(moved_from());
}
Result<void> Session::add_metric(const std::string& key, double value) {
  for (MetricInfo& info : metrics()) {
    if (info.key == key) return add_metric(MetricValue{std::move(info), value});
  }
  return add_metric(MetricValue{{.key = key}, value});
}
Result<void> Session::save(const std::string& path) const {
  return state_ != nullptr ? state_->save(path) : Result<void>(moved_from());
}
bool Session::recording() const noexcept { return state_ != nullptr && state_->recording(); }

}  // namespace layertrace
