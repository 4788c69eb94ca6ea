// A recording and the calling thread's state in it, read by hand.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capture/recorder.h"
#include "capture/recording.h"
#include "record/buffers.h"

namespace layertrace::test {

inline std::uint64_t no_key() { return 0; }

inline std::shared_ptr<Recording> make_recording(std::size_t chunks = 16) {
  return std::make_shared<Recording>(chunks, &no_key);
}

struct RecordingThread {
  explicit RecordingThread(std::size_t chunks = 16)
      : recording(make_recording(chunks)), state(open_window(recording)) {
    recording->take_new_threads(buffers);
  }

  std::vector<Record> take() { return test::take(*buffers.at(0)); }
  std::uint64_t dropped() const { return buffers.at(0)->dropped() + recording->lost(); }

  std::shared_ptr<Recording> recording;
  ThreadState state;
  std::vector<std::shared_ptr<ThreadBuffer>> buffers;

 private:
  static const std::shared_ptr<Recording>& open_window(
      const std::shared_ptr<Recording>& recording) {
    recording->open_window();
    return recording;
  }
};

}  // namespace layertrace::test
