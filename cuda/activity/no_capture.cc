// In place of CUPTI where its headers were not there to build with.
#include "capture/device.h"

namespace layertrace {

Result<DeviceParts> make_device_parts(const DeviceRequest& request) {
  const Error error{"cannot record what the GPU does",
                    "layertrace was built without CUPTI's headers",
                    "Build it where they are: beside a torch for CUDA, or with the CUDA toolkit"};
  if (request.require_gpu) return error;
  DeviceParts parts;
  parts.notes.push_back(error.message());
  return parts;
}

std::shared_ptr<LayerMarks> make_range_marks(const Definitions& /*definitions*/) { return nullptr; }

}  // namespace layertrace
