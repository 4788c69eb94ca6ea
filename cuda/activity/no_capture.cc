// In place of CUPTI where its headers were not there to build with.
#include "capture/device.h"

namespace layertrace {

Result<std::shared_ptr<DeviceCapture>> make_device_capture() {
  return Error{"cannot record what the GPU does", "layertrace was built without CUPTI's headers",
               "Build it where they are: beside a torch for CUDA, or with the CUDA toolkit"};
}

}  // namespace layertrace
