// What an error is called, and what it says.
#include <cctype>
#include <string>
#include <unordered_map>

#include "runtime/api.h"

namespace {

struct Name {
  cudaError_t error;
  const char* name;
};
constexpr Name kNames[] = {
#define SIMGPU_ERROR(name) {name, #name},
#include "cuda_errors.inc"
#undef SIMGPU_ERROR
};

// Programs and people know these by their words.
const char* known_text(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return nullptr;
  }
}

// "cudaErrorInvalidPitchValue" → "invalid pitch value".
std::string words_of(std::string_view name) {
  constexpr std::string_view kPrefix = "cudaError";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  std::string words;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !words.empty()) words += ' ';
    words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

}  // namespace

SIMGPU_API const char* cudaGetErrorName(cudaError_t error) {
  for (const Name& each : kNames) {
    if (each.error == error) return each.name;
  }
  return "unrecognized error code";
}

SIMGPU_API const char* cudaGetErrorString(cudaError_t error) {
  if (const char* text = known_text(error)) return text;
  static const auto* const kTexts = [] {
    auto* texts = new std::unordered_map<int, std::string>;  // never destroyed: its texts are out
    for (const Name& each : kNames) texts->emplace(each.error, words_of(each.name));
    return texts;
  }();
  const auto found = kTexts->find(error);
  return found == kTexts->end() ? "unrecognized error code" : found->second.c_str();
}
