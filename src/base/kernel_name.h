// A kernel's name for people. PyTorch's are templates of hundreds of characters, of which a few
// tell one from another: the kernel, and what it applies to each element.
#pragma once

#include <string>
#include <string_view>

namespace layertrace {

// Of a demangled name: without result, arguments, namespaces and what its templates are made of,
// but for the functors among them, the innermost:
// "vectorized_elementwise_kernel<CUDAFunctor_add<float>>". Names that are long all the same lose
// their middle. Other names stay as they are.
std::string short_kernel_name(std::string_view name);

}  // namespace layertrace
