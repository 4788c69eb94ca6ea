// The columns that there are, with their names and what is in them.
#pragma once

#include <array>
#include <string_view>

#include <layertrace/report.h>

#include "report/figures.h"

namespace layertrace::report {

enum class Kind {
  kText,
  kTime,
  kCount,
  kActivityTime,
  kActivityCount,
  kShareOfHost,
  kShareOfStep,
  kAmount,    // how many, with a prefix
  kBytes,     // that are moved
  kMemory,    // bytes that are held
  kOfDevice,  // what was achieved: place_cell()
};

struct ColumnInfo {
  Column column;
  std::string_view name;   // on the command line
  std::string_view title;  // in the heading
  Kind kind;
  int importance;  // the lowest is the first to go where the line is too short
  double Figures::*value;
};

inline constexpr std::array kColumns{
    ColumnInfo{Column::kType, "type", "type", Kind::kText, 6, nullptr},
    ColumnInfo{Column::kForward, "forward", "forward", Kind::kTime, 9, &Figures::forward_ns},
    ColumnInfo{Column::kBackward, "backward", "backward", Kind::kTime, 8, &Figures::backward_ns},
    ColumnInfo{Column::kTotal, "total", "total", Kind::kTime, 7, &Figures::total_ns},
    ColumnInfo{Column::kRecompute, "recompute", "recompute", Kind::kTime, 4,
               &Figures::recompute_ns},
    ColumnInfo{Column::kSelf, "self", "self", Kind::kTime, 5, &Figures::self_ns},
    ColumnInfo{Column::kActivityTime, "activity_time", "activity time", Kind::kActivityTime, 3,
               &Figures::activity_ns},
    ColumnInfo{Column::kBusy, "busy", "busy", Kind::kActivityTime, 2, &Figures::busy_ns},
    ColumnInfo{Column::kCalls, "calls", "calls", Kind::kCount, 1, &Figures::calls},
    ColumnInfo{Column::kActivities, "activities", "activities", Kind::kActivityCount, 0,
               &Figures::activities},
    ColumnInfo{Column::kGpuForward, "gpu_forward", "GPU forward", Kind::kActivityTime, 11,
               &Figures::gpu_forward_ns},
    ColumnInfo{Column::kGpuBackward, "gpu_backward", "GPU backward", Kind::kActivityTime, 10,
               &Figures::gpu_backward_ns},
    ColumnInfo{Column::kKernels, "kernels", "kernels", Kind::kActivityCount, 0,
               &Figures::activities},
    ColumnInfo{Column::kCopies, "copies", "copies", Kind::kActivityCount, 0, &Figures::copies},
    ColumnInfo{Column::kLaunches, "launches", "launches", Kind::kActivityCount, 0,
               &Figures::launches},
    ColumnInfo{Column::kGpuEventForward, "gpu_event_forward", "GPU event forward",
               Kind::kActivityTime, 5, &Figures::event_forward_ns},
    ColumnInfo{Column::kGpuEventBackward, "gpu_event_backward", "GPU event backward",
               Kind::kActivityTime, 4, &Figures::event_backward_ns},
    ColumnInfo{Column::kIdle, "idle", "GPU idle", Kind::kActivityTime, 3, &Figures::idle_ns},
    ColumnInfo{Column::kLaunchBound, "launch_bound", "launch-bound", Kind::kShareOfHost, 3,
               &Figures::launch_idle_ns},
    ColumnInfo{Column::kParams, "params", "params", Kind::kAmount, 3, &Figures::params},
    ColumnInfo{Column::kParamsTrainable, "params_trainable", "trainable", Kind::kAmount, 2,
               &Figures::params_trainable},
    ColumnInfo{Column::kParamBytes, "param_bytes", "param bytes", Kind::kMemory, 2,
               &Figures::param_bytes},
    ColumnInfo{Column::kKernelSize, "kernel_size", "kernel size", Kind::kText, 2, nullptr},
    ColumnInfo{Column::kInputShapes, "input_shapes", "input", Kind::kText, 2, nullptr},
    ColumnInfo{Column::kOutputShapes, "output_shapes", "output", Kind::kText, 2, nullptr},
    ColumnInfo{Column::kForwardFlops, "forward_flops", "forward FLOPs", Kind::kAmount, 4,
               &Figures::forward_flops},
    ColumnInfo{Column::kBackwardFlops, "backward_flops", "backward FLOPs", Kind::kAmount, 4,
               &Figures::backward_flops},
    ColumnInfo{Column::kFlops, "flops", "FLOPs", Kind::kAmount, 4, &Figures::flops},
    ColumnInfo{Column::kMacs, "macs", "MACs", Kind::kAmount, 3, &Figures::macs},
    ColumnInfo{Column::kAuxFlops, "aux_flops", "aux FLOPs", Kind::kAmount, 2, &Figures::aux_flops},
    ColumnInfo{Column::kBytes, "bytes", "bytes", Kind::kBytes, 2, &Figures::bytes},
    ColumnInfo{Column::kActivations, "activations", "activation elements", Kind::kAmount, 2,
               &Figures::activations},
    ColumnInfo{Column::kMemoryPeak, "memory_peak", "memory peak", Kind::kMemory, 3,
               &Figures::memory_peak},
    ColumnInfo{Column::kMemoryKept, "memory_kept", "memory kept", Kind::kMemory, 3,
               &Figures::memory_kept},
    ColumnInfo{Column::kTflops, "tflops", "FLOP/s", Kind::kOfDevice, 5, nullptr},
    ColumnInfo{Column::kGbs, "gbs", "B/s", Kind::kOfDevice, 3, nullptr},
    ColumnInfo{Column::kIntensity, "intensity", "FLOP/B", Kind::kOfDevice, 2, nullptr},
    ColumnInfo{Column::kRoof, "roof", "roof", Kind::kOfDevice, 3, nullptr},
    ColumnInfo{Column::kPeakShare, "peak_share", "of roof", Kind::kOfDevice, 4, nullptr},
    ColumnInfo{Column::kUnexplained, "unexplained", "unexplained", Kind::kOfDevice, 3, nullptr},
    ColumnInfo{Column::kName, "name", "name", Kind::kText, 6, nullptr},
    ColumnInfo{Column::kPath, "path", "path", Kind::kText, 6, nullptr},
    ColumnInfo{Column::kShare, "share", "share", Kind::kShareOfStep, 7, nullptr},
    ColumnInfo{Column::kGpuTotal, "gpu_total", "GPU total", Kind::kActivityTime, 9,
               &Figures::gpu_total_ns},
    ColumnInfo{Column::kGpuEventTotal, "gpu_event_total", "GPU event total", Kind::kActivityTime, 4,
               &Figures::event_total_ns},
    ColumnInfo{Column::kComputeShare, "compute_share", "of peak", Kind::kOfDevice, 4, nullptr},
};

// What other tools call them.
struct Alias {
  std::string_view name;
  Column column;
};
inline constexpr std::array kAliases{
    Alias{"parameters", Column::kParams},      Alias{"trainable", Column::kParamsTrainable},
    Alias{"input_size", Column::kInputShapes}, Alias{"output_size", Column::kOutputShapes},
    Alias{"memory", Column::kMemoryPeak},
};

}  // namespace layertrace::report
