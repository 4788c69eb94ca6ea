// Another profiler's trace, read and attributed: from its file to spans.
#pragma once

#include <string>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/result.h>

#include "attribute/span.h"
#include "kineto/accounts.h"
#include "kineto/event_reader.h"
#include "kineto/events.h"

namespace layertrace::kineto {

struct ReadTrace {
  Trace trace;
  RunInfo run;  // what the file says of it
  std::vector<std::string> notes;
  Accounts accounts;
  std::uint64_t events = 0;
};

Result<ReadTrace> read_trace_json(const std::string& path, const EventReader::Progress& progress);

// Fills the dictionary and calls the sink; the sink knows already whether there is a device. Then
// the accounts are complete.
void attribute(ReadTrace& read, Dictionary& dictionary, SpanSink& sink);

}  // namespace layertrace::kineto
