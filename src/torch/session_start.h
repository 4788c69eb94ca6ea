// Starting a session with a choice that users do not have: tests run both ways of seeing autograd's nodes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

#include "torch/torch_hooks.h"

namespace layertrace {

LAYERTRACE_API Result<std::shared_ptr<SessionState>> start_session(
    const std::vector<std::pair<std::string, torch::nn::Module*>>& models, Options options, NodeSource nodes);

}  // namespace layertrace
