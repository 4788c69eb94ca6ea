// What kind of thing an event tells of. The words for it have changed over the years and from
// vendor to vendor; this is their one list.
#pragma once

#include <cstdint>
#include <string_view>

namespace layertrace::kineto {

enum class Category : std::uint8_t {
  kNone,              // none is given
  kOperator,          // on the host
  kAnnotation,        // a record_function() of the user's or of PyTorch's
  kPython,            // a Python frame; a module's call is one
  kKernel,            // on a device
  kCopy,              // likewise
  kSet,               // likewise
  kCall,              // of a vendor's runtime or driver
  kSynchronisation,   // a device's view of a wait
  kInstant,           // on the host: reports of memory
  kForwardBackward,   // a flow from a forward operator to its backward
  kLaunchFlow,        // a flow from a call to what it asked for
  kDeviceAnnotation,  // an annotation again, as it fell on a device
  kOverhead,          // of the profiler
  kMarker,            // of the recording as a whole
  kOther,
};

Category category_of(std::string_view cat) noexcept;

constexpr bool is_device_activity(Category category) noexcept {
  return category == Category::kKernel || category == Category::kCopy || category == Category::kSet;
}

}  // namespace layertrace::kineto
