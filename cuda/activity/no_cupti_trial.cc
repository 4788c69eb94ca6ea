// In place of the trial where CUPTI's headers were not there to build with.
#include "activity/cuda_environment.h"

namespace layertrace::cuda {

CuptiTrial try_cupti(const std::string& /*torch_folder*/, bool /*has_device*/) {
  CuptiTrial trial;
  trial.answer = CuptiAnswer::kNotBuilt;
  trial.cause = "layertrace was built without CUPTI's headers";
  return trial;
}

}  // namespace layertrace::cuda
