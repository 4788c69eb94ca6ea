// A library with CUPTI's functions, which do nothing: of one version, or without some of them.
#include <cstdint>

#ifndef FAKE_CUPTI_VERSION
#define FAKE_CUPTI_VERSION 26  // of CUDA 12.8
#endif

// NOLINTBEGIN(readability-identifier-naming): CUPTI's names.
#define FAKE_API extern "C" __attribute__((visibility("default")))
#define FAKE_FUNCTION(name) \
  FAKE_API int name() { return 0; }

FAKE_API int cuptiGetVersion(std::uint32_t* version) {
  *version = FAKE_CUPTI_VERSION;
  return 0;
}
FAKE_FUNCTION(cuptiActivityRegisterCallbacks)
FAKE_FUNCTION(cuptiActivityEnable)
FAKE_FUNCTION(cuptiActivityDisable)
FAKE_FUNCTION(cuptiActivityFlushAll)
FAKE_FUNCTION(cuptiActivityGetNextRecord)
FAKE_FUNCTION(cuptiActivityGetNumDroppedRecords)
FAKE_FUNCTION(cuptiActivityPushExternalCorrelationId)
FAKE_FUNCTION(cuptiActivityPopExternalCorrelationId)
FAKE_FUNCTION(cuptiSubscribe)
FAKE_FUNCTION(cuptiUnsubscribe)
FAKE_FUNCTION(cuptiGetTimestamp)
FAKE_FUNCTION(cuptiEnableCallback)
FAKE_FUNCTION(cuptiGetCallbackName)
#ifndef FAKE_CUPTI_INCOMPLETE
FAKE_FUNCTION(cuptiGetGraphNodeId)
#endif
// NOLINTEND(readability-identifier-naming)
