// A disk that fails to order. The victim defines write() and rename() itself, in front of the C
// library's, so a test needs neither privileges nor a broken device: it names the file, what shall
// happen, and after how many bytes.
#pragma once

#include <string>

namespace disk {

// Writes to `path` fail with this errno once so many bytes were written to it.
void fail_writes(const std::string& path, long after_bytes, int error);
// rename() onto `path` fails with this errno.
void fail_rename(const std::string& path, int error);
// Writes to any `.part` file wait until release(): a disk that hangs.
void hold();
void release();
// Half of the write that reaches so many bytes of `path` is done, then the process is killed as by
// kill -9.
void die_in_write(const std::string& path, long after_bytes);
// Likewise, just before rename() onto `path`.
void die_in_rename(const std::string& path);
// The disk works again.
void repair();

}  // namespace disk
