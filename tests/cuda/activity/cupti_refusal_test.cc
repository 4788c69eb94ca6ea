// What is said where CUPTI refuses.
#include "activity/cupti_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace layertrace::cuda {
namespace {

using testing::HasSubstr;

struct Expected {
  CUptiResult result;
  const char* reason;
  const char* remedy;
  CuptiAnswer answer = CuptiAnswer::kRefused;
};

TEST(CuptiRefusals, HaveAReasonAndARemedy) {
  for (const Expected& expected : {
           Expected{CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "virtualised", "passed through"},
           Expected{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "this user may not profile",
                    "NVreg_RestrictProfilingToAdminUsers=0", CuptiAnswer::kNoPrivileges},
           Expected{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "it has a client already",
                    "end it first", CuptiAnswer::kSubscribed},
           Expected{CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, "hypervisor",
                    "enable_profiling=1", CuptiAnswer::kNoPrivileges},
           Expected{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "confidential computing",
                    "timing=\"events\""},
           Expected{CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "MIG", "whole device"},
           Expected{CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "WSL", "Linux itself"},
       }) {
    const CuptiRefusal refusal = refusal_of(expected.result);
    EXPECT_THAT(refusal.reason, HasSubstr(expected.reason));
    EXPECT_THAT(refusal.remedy, HasSubstr(expected.remedy));
    EXPECT_EQ(refusal.answer, expected.answer) << expected.result;
    const Error error = refused(expected.result);
    EXPECT_THAT(error.message(), HasSubstr(expected.reason));
    EXPECT_THAT(error.message(), HasSubstr(expected.remedy));
    EXPECT_THAT(error.cause, HasSubstr("(" + std::to_string(expected.result) + ")"));
  }
}

TEST(CuptiRefusals, AreToldApart) {
  std::set<std::string> reasons;
  for (const CuptiRefusal& refusal : cupti_refusals()) {
    EXPECT_TRUE(reasons.insert(refusal.reason).second) << refusal.reason;
    EXPECT_STRNE(refusal.remedy, "");
  }
}

TEST(CuptiRefusals, OfOtherKindsHaveTheirNumber) {
  EXPECT_EQ(refusal_of(CUPTI_ERROR_UNKNOWN).answer, CuptiAnswer::kRefused);
  EXPECT_THAT(refused(CUPTI_ERROR_UNKNOWN).cause, HasSubstr("(999)"));
  EXPECT_THAT(refused(CUPTI_ERROR_UNKNOWN).remedy, HasSubstr("release notes"));
}

}  // namespace
}  // namespace layertrace::cuda
