#include <layertrace/trace.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "attribute/fold.h"
#include "base/output_file.h"
#include "kineto/import.h"
#include "perfetto/trace_writer.h"
#include "roofline/rates.h"
#include "session/span_tee.h"

namespace layertrace {
namespace {

bool has_device(const kineto::ReadTrace& read) {
  return !read.trace.device.empty() || !read.accounts.rejected().empty();
}

RunInfo run_info(const kineto::ReadTrace& read) {
  RunInfo run = read.run;
  run.layertrace_version = kVersion;
  run.format_version = kFormatVersion;
  run.clock = "source";
  if (!has_device(read)) {
    run.device.clear();
  } else if (run.device.empty()) {
    run.device = "GPU";
  }
  // simgpu's devices say so in their names, which is all that a profiler tells of them.
  if (run.device.starts_with("simulated")) run.simulated = run.device;
  return run;
}

Health health_of(const kineto::ReadTrace& read) {
  Health health;
  health.source = read.accounts.summary(read.events);
  health.rejected = read.accounts.rejected();
  health.emitted = health.recorded = read.events;
  health.notes = read.notes;
  if (has_device(read)) {
    health.gpu.source = read.run.imported_from;
    health.gpu.timing = "cupti";
  }
  return health;
}

// Where nothing is to be written.
class NoBytes final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> /*bytes*/) override {}
};

Profile attribute_and_fold(kineto::ReadTrace& read, ByteSink* out) {
  const RunInfo run = run_info(read);
  Dictionary dictionary;
  Fold fold(dictionary);
  NoBytes no_bytes;
  const auto writer = TraceWriter::make(dictionary, out != nullptr ? *out : no_bytes, run);
  SpanTee tee(fold, *writer);
  SpanSink& sink = out != nullptr ? static_cast<SpanSink&>(tee) : fold;
  if (!run.device.empty()) sink.use_device(run.device);
  sink.count_outside_steps();
  kineto::attribute(read, dictionary, sink);

  const auto end_ns = static_cast<std::uint64_t>(read.trace.end_ns);
  Profile profile = fold.finish(end_ns);
  profile.run = run;
  profile.device = roofline::find_device_info(run);
  roofline::fill_rates(profile);
  const Health closing = health_of(read);
  if (out != nullptr) {
    writer->describe_device(profile.device);
    writer->close(closing, end_ns);
  }
  add_closing(profile.health, closing);
  return profile;
}

// Whose events take how much memory nobody knows beforehand.
Result<Profile> read_and_fold(const std::string& path, const ImportOptions& options,
                              ByteSink* out) try {
  auto read = kineto::read_trace_json(path, options.progress);
  if (!read) return read.error();
  return attribute_and_fold(*read, out);
} catch (const std::bad_alloc&) {
  return Error{"cannot import " + path, "there is not enough memory for its events",
               "Free some, or record fewer steps: a fifth of the JSON's size is needed"};
}

}  // namespace

Result<Profile> import_trace(const std::string& path, const ImportOptions& options) {
  std::error_code none;
  if (!options.output.empty() && std::filesystem::equivalent(path, options.output, none)) {
    return Error{"cannot import " + path, "the output is the same file",
                 "Give the output another name"};
  }
  // First of all: a place that cannot be written to is known before minutes of reading.
  std::unique_ptr<OutputFile> file;
  if (!options.output.empty()) {
    auto created = OutputFile::create(options.output, 0);
    if (!created) return created.error();
    file = std::move(*created);
  }
  auto profile = read_and_fold(path, options, file.get());
  if (!file) return profile;
  if (!profile) {
    file->discard();
    return profile;
  }
  if (auto written = file->commit(); !written) {
    file->discard();
    return written.error();
  }
  return profile;
}

}  // namespace layertrace
