#include "kineto/category.h"

#include <algorithm>
#include <array>
#include <utility>

namespace layertrace::kineto {
namespace {

constexpr std::pair<std::string_view, Category> kCategories[] = {
    {"", Category::kNone},
    {"cpu_op", Category::kOperator},
    {"operator", Category::kOperator},  // until 2022
    {"user_annotation", Category::kAnnotation},
    {"python_function", Category::kPython},
    {"python", Category::kPython},
    {"kernel", Category::kKernel},
    {"concurrent_kernel", Category::kKernel},
    {"gpu_memcpy", Category::kCopy},
    {"memcpy", Category::kCopy},
    {"gpu_memset", Category::kSet},
    {"memset", Category::kSet},
    {"cuda_sync", Category::kSynchronisation},
    {"xpu_sync", Category::kSynchronisation},
    {"cuda_event", Category::kSynchronisation},
    {"cpu_instant_event", Category::kInstant},
    {"memory", Category::kInstant},
    {"fwdbwd", Category::kForwardBackward},
    {"forward_backward", Category::kForwardBackward},
    {"ac2g", Category::kLaunchFlow},
    {"async_cpu_to_gpu", Category::kLaunchFlow},
    {"async_gpu", Category::kLaunchFlow},
    {"async", Category::kLaunchFlow},
    {"gpu_user_annotation", Category::kDeviceAnnotation},
    {"overhead", Category::kOverhead},
    {"trace", Category::kMarker},
};

}  // namespace

// cuda_runtime, cuda_driver, hip_runtime, xpu_runtime, mtia_runtime, and Runtime as it once was.
Category category_of(std::string_view cat) noexcept {
  std::array<char, 24> lower{};
  if (cat.size() > lower.size()) return Category::kOther;
  std::ranges::transform(cat, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::string_view word(lower.data(), cat.size());
  if (word.ends_with("runtime") || word.ends_with("driver")) return Category::kCall;
  for (const auto& [name, category] : kCategories) {
    if (name == word) return category;
  }
  return Category::kOther;
}

}  // namespace layertrace::kineto
