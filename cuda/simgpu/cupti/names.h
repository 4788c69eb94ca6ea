// The names of functions and of results, from CUPTI's own headers.
#pragma once

#include <cupti.h>

#include <cstdint>

namespace simgpu::cupti {

// "cudaMalloc" of "cudaMalloc_v3020". Lives as long as the process.
const char* function_name(const char* versioned);

// nullptr for a number that no function, or callback, has.
const char* callback_name(CUpti_CallbackDomain domain, std::uint32_t id);

// nullptr for one that there is not.
const char* result_name(CUptiResult result);

}  // namespace simgpu::cupti
