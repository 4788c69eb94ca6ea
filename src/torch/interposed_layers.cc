// LibTorch's own layers. Each exported forward is defined here once more, opens a scope, and calls
// the real one; the list is generated from the library (generate_layers.py). libtorch is not linked
// -Bsymbolic (seen in 2.15), so its inner calls come here too: TransformerEncoderLayer calling its
// Linear.
#include <torch/nn.h>

#include <utility>

#include "torch/next_function.h"
#include "torch/scopes.h"

namespace torch::nn {

using layertrace::InterposedScope;
using layertrace::next_function;

#include "layers.inc"

}  // namespace torch::nn
