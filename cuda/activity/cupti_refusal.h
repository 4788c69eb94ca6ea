// Why CUPTI refuses, in words, and what to do about it: one table for a session's notes and for
// `layertrace doctor`.
#pragma once

#include <cupti.h>

#include <span>
#include <string>

#include <layertrace/result.h>

#include "activity/cuda_environment.h"

namespace layertrace::cuda {

struct CuptiRefusal {
  CUptiResult result;
  CuptiAnswer answer;
  const char* reason;
  const char* remedy;
};

// Those that have words of their own.
std::span<const CuptiRefusal> cupti_refusals() noexcept;
// Of any result but success: one that has no words of its own has some that fit all.
CuptiRefusal refusal_of(CUptiResult result) noexcept;

// "CUPTI refuses: this user may not profile (35)".
std::string cause_of(const CuptiRefusal& refusal);
// The same as a session tells it.
Error refused(CUptiResult result);

}  // namespace layertrace::cuda
