// `layertrace doctor`: will a session record the GPU here, and if not, what is to be done?
#pragma once

#include <string>

namespace layertrace::tools {

struct DoctorOptions {
  std::string python;  // the one to ask for torch; "" for the usual ones
  bool json = false;
};

struct DoctorReport {
  std::string text;
  int exit_code = 0;
};

// Looks at everything. CUPTI is tried in this process, so that what was preloaded or injected into
// it is met as a program would meet it.
DoctorReport doctor(const DoctorOptions& options);

}  // namespace layertrace::tools
