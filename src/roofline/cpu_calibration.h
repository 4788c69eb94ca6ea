// What this machine's CPU can do, by measuring it.
//
// No table knows a CPU: its clock depends on the instructions it runs, on how many cores run them,
// and in a virtual machine on the neighbours; its memory on how it is fitted out. So it is
// measured, for some tens of milliseconds, with as many threads as the program uses.
//
// What is measured, and no more:
//  - float32 and float64: independent fused multiply-adds on registers, in the widest vectors that
//    this unit has code for and the CPU supports (AVX-512, AVX2, NEON; scalars elsewhere). Of some
//    short runs the fastest counts.
//  - memory: reading, once through and in order, a buffer that has been flushed from the caches
//    before (x86-64 and AArch64; elsewhere a buffer of twice the largest cache). Writing takes
//    longer, and is not measured: no operator that writes reaches this.
//
// It says nothing of bfloat16, float16 and int8 (AMX, VNNI: oneDNN may use them), so their peaks
// are 0. Nor of caches: what is read from there can be faster than the memory, and its share of the
// roof above 1. What else the machine does meanwhile lowers the figures.
#pragma once

#include <cstddef>
#include <string_view>

#include <layertrace/result.h>

#include "roofline/device_peaks.h"

namespace layertrace::roofline {

struct CpuCalibration {
  DevicePeaks peaks;              // origin: measured; named "CPU, 2 threads"
  int threads = 1;                // at once, in every measurement
  std::string_view instructions;  // of the multiply-adds: "AVX-512", "AVX2", "NEON", "scalar"
  std::size_t bytes_read = 0;     // in one pass, by all threads
  double took_ms = 0;
};

// Takes some 30 ms, more where there are many threads to start, and these threads' full time.
// `threads` below 1 counts as 1. Fails where memory or threads are not to be had. Sets nothing of
// the process: not the threads' cores, nor their priority.
Result<CpuCalibration> calibrate_cpu(int threads = 1);

}  // namespace layertrace::roofline
