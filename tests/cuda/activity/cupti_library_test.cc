// Which of several CUPTIs is taken: libraries that can be loaded, and do not all serve.
#include "activity/cupti_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace layertrace::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kOld = FAKE_CUPTI_OLD;
const std::string kIncomplete = FAKE_CUPTI_INCOMPLETE;
const std::string kFit = FAKE_CUPTI_FIT;

TEST(CuptiSearch, TakesTheFirstThatServes) {
  const auto found = CuptiLibrary::find_among({}, {"/none/libcupti.so", kFit, kOld});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->path, kFit);
  EXPECT_EQ(found->version, 26u);
  EXPECT_NE(found->graph_node_id, nullptr);
  EXPECT_EQ(found->register_timestamp_callback, nullptr);  // not in every version
}

TEST(CuptiSearch, GoesOnFromOneThatIsTooOldOrNotComplete) {
  const auto found = CuptiLibrary::find_among({}, {kOld, kIncomplete, kFit});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->path, kFit);
  EXPECT_EQ(found->version, 26u);
}

TEST(CuptiSearch, GoesOnFromTheOneOfTheProcess) {
  ASSERT_NE(dlopen(kOld.c_str(), RTLD_LAZY | RTLD_LOCAL), nullptr);
  const auto found = CuptiLibrary::find_among({"/lib/libc.so.6", kOld}, {kFit});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->path, kFit);
  const auto none = CuptiLibrary::find_among({kOld}, {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().cause, HasSubstr(kOld));
}

TEST(CuptiSearch, TellsOfEachWhyItDoesNotServe) {
  const auto found = CuptiLibrary::find_among({}, {kOld, kIncomplete, kOld});
  ASSERT_FALSE(found);
  const std::string& cause = found.error().cause;
  EXPECT_EQ(cause, "the CUPTI in " + kOld +
                       " is of version 18, from before CUDA 12; the CUPTI in " + kIncomplete +
                       " is not complete");
  EXPECT_THAT(found.error().remedy,
              AllOf(HasSubstr("CUDA 12 or 13"), HasSubstr("LAYERTRACE_CUPTI")));
}

TEST(CuptiSearch, FindsNothingWhereThereIsNothing) {
  const auto found = CuptiLibrary::find_among({}, {"/none/libcupti.so"});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().cause, CuptiLibrary::kNotFound);
  EXPECT_THAT(found.error().remedy, HasSubstr("pip install nvidia-cuda-cupti"));
}

}  // namespace
}  // namespace layertrace::cuda
