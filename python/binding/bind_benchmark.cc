#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/benchmark.h>

#include "bindings.h"

namespace layertrace::python {
namespace {

using Times = std::vector<std::uint64_t>;

// As suits a stream, where `file_descriptor` names one.
TimingTextOptions text_options(std::string root, std::optional<int> depth, int width, bool color,
                               bool ascii) {
  return {.root = std::move(root),
          .depth = depth.value_or(-1),
          .width = width,
          .color = color,
          .ascii = ascii};
}

TimingTextOptions fitting(int file_descriptor, TimingTextOptions options) {
  const TreeOptions fit = for_terminal(
      file_descriptor, {.width = options.width, .color = options.color, .ascii = options.ascii});
  options.width = fit.width;
  options.color = fit.color;
  options.ascii = fit.ascii;
  return options;
}

Table benchmark_rows(const Benchmark& benchmark, TimedRows rows) {
  return value_or_raise(benchmark_table(benchmark, {.rows = rows}));
}

void bind_stats(nb::module_& m) {
  nb::class_<TimeStats>(m, "TimeStats")
      .def("__repr__", repr_of("count", "mean_ms", "stdev_ms", "min_ms", "median_ms", "max_ms"))
      .def_ro("count", &TimeStats::count)
      .def_ro("mean_ms", &TimeStats::mean_ms)
      .def_ro("stdev_ms", &TimeStats::stdev_ms)
      .def_ro("min_ms", &TimeStats::min_ms)
      .def_ro("p5_ms", &TimeStats::p5_ms)
      .def_ro("p25_ms", &TimeStats::p25_ms)
      .def_ro("median_ms", &TimeStats::median_ms)
      .def_ro("p75_ms", &TimeStats::p75_ms)
      .def_ro("p90_ms", &TimeStats::p90_ms)
      .def_ro("p95_ms", &TimeStats::p95_ms)
      .def_ro("p99_ms", &TimeStats::p99_ms)
      .def_ro("max_ms", &TimeStats::max_ms);
  nb::class_<TimingEnvironment>(m, "TimingEnvironment")
      .def("__repr__", repr_of("device", "gpu", "simulated", "intra_op_threads", "host_name"))
      .def_ro("device", &TimingEnvironment::device)
      .def_ro("gpu", &TimingEnvironment::gpu)
      .def_ro("simulated", &TimingEnvironment::simulated)
      .def_ro("intra_op_threads", &TimingEnvironment::intra_op_threads)
      .def_ro("inter_op_threads", &TimingEnvironment::inter_op_threads)
      .def_ro("host_name", &TimingEnvironment::host_name)
      .def_ro("os", &TimingEnvironment::os)
      .def_ro("os_release", &TimingEnvironment::os_release)
      .def_ro("cpu", &TimingEnvironment::cpu)
      .def_ro("cpu_count", &TimingEnvironment::cpu_count)
      .def_ro("memory_bytes", &TimingEnvironment::memory_bytes)
      .def_ro("torch_version", &TimingEnvironment::torch_version)
      .def_ro("layertrace_version", &TimingEnvironment::layertrace_version)
      .def_ro("python_version", &TimingEnvironment::python_version)
      .def_ro("command", &TimingEnvironment::command)
      .def_ro("commit", &TimingEnvironment::commit)
      .def_ro("run_name", &TimingEnvironment::run_name)
      .def_ro("created", &TimingEnvironment::created);
  m.def("time_stats", &time_stats, nb::arg("ns"));
  m.def(
      "timing_environment",
      [](const std::string& device, const std::string& gpu, const std::string& run_name) {
        TimingEnvironment environment = timing_environment(device, gpu);
        environment.python_version = python_version();
        environment.run_name = run_name;
        return environment;
      },
      nb::arg("device"), nb::arg("gpu"), nb::arg("run_name") = "");
}

// What a table does, of the one that is there unless another is asked for.
template <typename Type, typename Whole>
void bind_as_table(nb::class_<Type>& type, const Whole& whole) {
  type.def("_repr_html_", [whole](const Type& self) { return to_html(whole(self)); })
      .def("to_pandas",
           [whole](const Type& self) { return nb::cast(whole(self)).attr("to_pandas")(); })
      .def(
          "save",
          [whole](const Type& self, const nb::object& path) {
            nb::cast(whole(self)).attr("save")(path);
          },
          nb::arg("path"))
      .def(
          "__arrow_c_stream__",
          [whole](const Type& self, const nb::object& requested_schema) {
            return nb::cast(whole(self)).attr("__arrow_c_stream__")(requested_schema);
          },
          nb::arg("requested_schema") = nb::none());
}

void bind_whole_benchmark(nb::module_& m) {
  auto type =
      nb::class_<Benchmark>(m, "Benchmark")
          .def("__repr__",
               [](const Benchmark& self) {
                 return "<layertrace.Benchmark of " + self.model + ": " +
                        std::to_string(self.total_ns.size()) + " calls>";
               })
          .def("__str__", [](const Benchmark& self) { return benchmark_text(self); })
          .def_ro("model", &Benchmark::model)
          .def_ro("iterations", &Benchmark::iterations)
          .def_ro("drop_first", &Benchmark::drop_first)
          .def_ro("aggregate", &Benchmark::aggregate)
          .def_ro("total_ns", &Benchmark::total_ns)
          .def_ro("scoped_ns", &Benchmark::scoped_ns)
          .def_ro("environment", &Benchmark::environment)
          .def_ro("notes", &Benchmark::notes)
          .def_prop_ro("stats", [](const Benchmark& self) { return time_stats(self.total_ns); })
          .def_prop_ro("scope_overhead", &scope_overhead)
          .def_prop_ro(
              "total",
              [](const Benchmark& self) { return benchmark_rows(self, TimedRows::kTotal); })
          .def_prop_ro(
              "modules",
              [](const Benchmark& self) { return benchmark_rows(self, TimedRows::kModules); })
          .def(
              "table",
              [](const Benchmark& self, const std::string& rows, std::optional<bool> aggregate,
                 const std::string& module, std::optional<int> depth, const std::string& root,
                 bool leading_dot, std::optional<std::vector<std::string>> columns,
                 std::optional<std::size_t> limit) {
                return value_or_raise(benchmark_table(
                    self,
                    {.rows = value_or_raise(parse_timed_rows(rows)),
                     .aggregate = aggregate,
                     .table = {.module = module,
                               .depth = depth.value_or(-1),
                               .root = root,
                               .leading_dot = leading_dot,
                               .columns = std::move(columns).value_or(std::vector<std::string>{}),
                               .limit = limit.value_or(0)}}));
              },
              nb::arg("rows") = "all", nb::kw_only(), nb::arg("aggregate") = nb::none(),
              nb::arg("module") = "", nb::arg("depth") = nb::none(), nb::arg("root") = "",
              nb::arg("leading_dot") = false, nb::arg("columns") = nb::none(),
              nb::arg("limit") = nb::none())
          .def(
              "text",
              [](const Benchmark& self, std::string root, std::optional<int> depth, int width,
                 bool color, bool ascii) {
                return benchmark_text(self,
                                      text_options(std::move(root), depth, width, color, ascii));
              },
              nb::kw_only(), nb::arg("root") = "", nb::arg("depth") = nb::none(),
              nb::arg("width") = 0, nb::arg("color") = false, nb::arg("ascii") = false);
  bind_as_table(type, [](const Benchmark& self) { return benchmark_rows(self, TimedRows::kAll); });
  m.def(
      "make_benchmark",
      [](std::string model, std::uint64_t iterations, std::uint64_t drop_first, bool aggregate,
         Times total_ns, Times scoped_ns, const std::string& trace, const Profile* profile,
         TimingEnvironment environment) {
        Benchmark made{.model = std::move(model),
                       .iterations = iterations,
                       .drop_first = drop_first,
                       .total_ns = std::move(total_ns),
                       .scoped_ns = std::move(scoped_ns),
                       .environment = std::move(environment),
                       .aggregate = aggregate};
        if (profile != nullptr) {
          made.modules = value_or_raise(without_gil([&] { return timed_modules(trace); }));
          made.notes = recording_notes(*profile, !made.environment.gpu.empty());
        }
        return made;
      },
      nb::arg("model"), nb::arg("iterations"), nb::arg("drop_first"), nb::arg("aggregate"),
      nb::arg("total_ns"), nb::arg("scoped_ns"), nb::arg("trace"), nb::arg("profile").none(),
      nb::arg("environment"));
  m.def("terminal_benchmark", [](const Benchmark& self, int file_descriptor, std::string root,
                                 std::optional<int> depth) {
    return benchmark_text(
        self, fitting(file_descriptor, text_options(std::move(root), depth, 0, false, false)));
  });
}

void bind_throughput(nb::module_& m) {
  auto type = nb::class_<Throughput>(m, "Throughput")
                  .def("__repr__",
                       [](const Throughput& self) {
                         return "<layertrace.Throughput of " + self.model + ": " +
                                std::to_string(self.batches.size()) + " batch sizes>";
                       })
                  .def("__str__", [](const Throughput& self) { return throughput_text(self); })
                  .def_ro("model", &Throughput::model)
                  .def_ro("iterations", &Throughput::iterations)
                  .def_ro("drop_first", &Throughput::drop_first)
                  .def_ro("environment", &Throughput::environment)
                  .def_prop_ro("batch_sizes",
                               [](const Throughput& self) {
                                 Times sizes;
                                 for (const BatchTimes& batch : self.batches)
                                   sizes.push_back(batch.batch_size);
                                 return sizes;
                               })
                  .def_prop_ro("out_of_memory_at",
                               [](const Throughput& self) {
                                 return self.out_of_memory_at == 0
                                            ? std::nullopt
                                            : std::optional(self.out_of_memory_at);
                               })
                  .def("table", &throughput_table)
                  .def(
                      "plot",
                      [](const nb::object& self, const nb::object& path) {
                        return nb::module_::import_("layertrace._pictures")
                            .attr("plot_throughput")(self, path);
                      },
                      nb::arg("path") = nb::none())
                  .def(
                      "text",
                      [](const Throughput& self, int width, bool color, bool ascii) {
                        return throughput_text(self, text_options("", {}, width, color, ascii));
                      },
                      nb::kw_only(), nb::arg("width") = 0, nb::arg("color") = false,
                      nb::arg("ascii") = false);
  bind_as_table(type, &throughput_table);
  m.def(
      "make_throughput",
      [](std::string model, std::uint64_t iterations, std::uint64_t drop_first,
         const std::vector<std::pair<std::uint64_t, Times>>& batches, TimingEnvironment environment,
         std::uint64_t out_of_memory_at) {
        Throughput made{.model = std::move(model),
                        .iterations = iterations,
                        .drop_first = drop_first,
                        .environment = std::move(environment),
                        .out_of_memory_at = out_of_memory_at};
        for (const auto& [size, ns] : batches) made.batches.push_back({size, ns});
        return made;
      },
      nb::arg("model"), nb::arg("iterations"), nb::arg("drop_first"), nb::arg("batches"),
      nb::arg("environment"), nb::arg("out_of_memory_at"));
  m.def("terminal_throughput", [](const Throughput& self, int file_descriptor) {
    return throughput_text(self, fitting(file_descriptor, {}));
  });
}

}  // namespace

void bind_benchmark(nb::module_& m) {
  bind_stats(m);
  bind_whole_benchmark(m);
  bind_throughput(m);
}

}  // namespace layertrace::python
