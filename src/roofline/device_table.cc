#include "roofline/device_table.h"

#include <array>

namespace layertrace::roofline {
namespace {

// Data-centre GPUs stand here with the figures of their datasheets. Where a datasheet prints tensor
// figures "with sparsity" alone (Hopper and later, L4), they are halved here.
//
// Of graphics and workstation cards NVIDIA prints cores and boost clock for each, and what a
// multiprocessor does in a cycle in one whitepaper for the family: their peaks are computed from
// these as the whitepapers do it, who print the same figures for the cards that they list.
//
// 16-bit products are taken to add up in 32 bits, as PyTorch's do unless
// allow_fp16_accumulation is set: on GeForce cards this halves the rate. Of 8-bit floats the faster
// rate counts, since cuBLASLt's kernels with fast accumulation reach it.
//
// `source` names the document that prints a figure. How they were checked, since the documents
// themselves were not at hand: cores, clocks, float32, float64 and bandwidth by a copy of
// TechPowerUp's database of 2025 (all but H20, GH200, GB200 and GB300, which it has not, and the
// bandwidth of B200, B300, MI300X and MI325X, which it has for a part of the device); those and
// the tensor cores' by the tables in PyTorch 2.15 (torch/_inductor/analysis/device_info.py) and
// Lightning (throughput.py), and by reprints. Where the database differs from what others quote
// from the vendor's document (V100-SXM2-16GB, tensor cores of L40, float64 of A10), the vendor's
// stands. What had no second source, or two that disagree, is left out, but for these, which
// follow from others: the formats of A30, H100 NVL and H200 NVL other than 16-bit ones (the
// ratios of A100 and H100), and GeForce RTX 20's half rate for 32-bit sums (as the later
// GeForces have it).

constexpr std::string_view kVolta = "NVIDIA V100 datasheet (1165301-r5)";
constexpr std::string_view kV100s = "NVIDIA V100 datasheet (2020), column V100S PCIe";
constexpr std::string_view kTuring =
    "NVIDIA Turing GPU architecture whitepaper: rates of the multiprocessor; cores, "
    "boost clock and bandwidth of the card";
constexpr std::string_view kT4 = "NVIDIA T4 datasheet (951643)";
constexpr std::string_view kA100 = "NVIDIA A100 datasheet (1758950-r4)";
constexpr std::string_view kA30 = "NVIDIA A30 datasheet";
constexpr std::string_view kA10g = "NVIDIA A10G datasheet for AWS (2022)";
constexpr std::string_view kAmpere =
    "NVIDIA Ampere GA102 GPU architecture whitepaper (V2.0): rates of the multiprocessor; cores, "
    "boost clock and bandwidth of the card";
constexpr std::string_view kOrin = "NVIDIA Jetson AGX Orin technical brief (v1.2), 64 GB, MAXN";
constexpr std::string_view kH100 = "NVIDIA H100 Tensor Core GPU architecture whitepaper";
constexpr std::string_view kH100Nvl = "NVIDIA H100 datasheet (2024), column H100 NVL";
constexpr std::string_view kH200 = "NVIDIA H200 datasheet";
constexpr std::string_view kGh200 = "NVIDIA GH200 Grace Hopper Superchip datasheet";
constexpr std::string_view kH20 = "NVIDIA's H20 product sheet as the trade press printed it (2023)";
constexpr std::string_view kL4 = "NVIDIA L4 datasheet";
constexpr std::string_view kL40 = "NVIDIA L40 datasheet";
constexpr std::string_view kL40s = "NVIDIA L40S datasheet";
constexpr std::string_view kAda =
    "NVIDIA Ada GPU architecture whitepaper: rates of the multiprocessor; cores, boost "
    "clock and bandwidth of the card";
constexpr std::string_view kB200 = "NVIDIA Blackwell datasheet, HGX B200, one of eight GPUs";
constexpr std::string_view kGb200 = "NVIDIA Blackwell datasheet, GB200 NVL72, one of 72 GPUs";
constexpr std::string_view kB300 = "NVIDIA HGX B300 specifications, one of eight GPUs";
constexpr std::string_view kGb300 = "NVIDIA GB300 NVL72 specifications, one of 72 GPUs";
constexpr std::string_view kRtxBlackwell =
    "NVIDIA RTX Blackwell GPU architecture whitepaper: rates of the multiprocessor; cores, boost "
    "clock and bandwidth of the card";
constexpr std::string_view kMi210 = "AMD Instinct MI210 brochure";
constexpr std::string_view kMi250x =
    "AMD Instinct MI250X datasheet; of the two dies one, which is what HIP calls a device";
constexpr std::string_view kMi300x = "AMD Instinct MI300X data sheet";
constexpr std::string_view kMi325x = "AMD Instinct MI325X data sheet";
constexpr std::string_view kSimulated = "what layertrace's simulated device reckons with";

// A card by what NVIDIA prints of it.
struct Card {
  std::string_view name;
  double cores;
  double boost_mhz;
  double bandwidth;  // 0 where cards of this name have different memory
  int memory_gib = 0;

  constexpr double fp32() const { return 2 * cores * boost_mhz / 1e6; }
};

constexpr DeviceRow make_row(const Card& card, double fp64, std::string_view source) {
  return {.name = card.name,
          .memory_gib = card.memory_gib,
          .fp64 = card.fp32() * fp64,
          .fp32 = card.fp32(),
          .bandwidth = card.bandwidth,
          .source = source};
}

// Tensor cores' rates as multiples of the CUDA cores' in float32. `half` is with 32-bit sums.
constexpr DeviceRow turing(const Card& card, double half) {
  DeviceRow row = make_row(card, 1.0 / 32, kTuring);
  row.fp16 = half * row.fp32;
  row.int8 = 16 * row.fp32;
  return row;
}

constexpr DeviceRow ampere(const Card& card, double half) {
  DeviceRow row = make_row(card, 1.0 / 64, kAmpere);
  row.tf32 = half / 2 * row.fp32;
  row.fp16 = half * row.fp32;
  row.bf16 = half * row.fp32;
  row.int8 = 8 * row.fp32;
  return row;
}

constexpr DeviceRow ada(const Card& card, double half) {
  DeviceRow row = ampere(card, half);
  row.fp8 = 8 * row.fp32;
  row.source = kAda;
  return row;
}

constexpr DeviceRow blackwell(const Card& card, double half) {
  DeviceRow row = ada(card, half);
  row.fp4 = 16 * row.fp32;
  row.source = kRtxBlackwell;
  return row;
}

constexpr DeviceRow v100_sxm2(std::string_view name) {
  return {.name = name, .fp64 = 7.8, .fp32 = 15.7, .fp16 = 125, .bandwidth = 900, .source = kVolta};
}

constexpr DeviceRow v100_pcie(std::string_view name) {
  return {.name = name, .fp64 = 7, .fp32 = 14, .fp16 = 112, .bandwidth = 900, .source = kVolta};
}

constexpr DeviceRow a100(std::string_view name, double bandwidth) {
  return {.name = name,
          .fp64 = 9.7,
          .fp64_matrix = 19.5,
          .fp32 = 19.5,
          .tf32 = 156,
          .fp16 = 312,
          .bf16 = 312,
          .int8 = 624,
          .bandwidth = bandwidth,
          .source = kA100};
}

// The chip of H100 SXM, H200 and GH200: they differ in memory.
constexpr DeviceRow h100(std::string_view name, double bandwidth, std::string_view source) {
  return {.name = name,
          .fp64 = 33.5,
          .fp64_matrix = 66.9,
          .fp32 = 66.9,
          .tf32 = 494.7,
          .fp16 = 989.4,
          .bf16 = 989.4,
          .fp8 = 1978.9,
          .int8 = 1978.9,
          .bandwidth = bandwidth,
          .source = source};
}

constexpr DeviceRow hopper_nvl(std::string_view name, double bandwidth, std::string_view source) {
  return {.name = name,
          .fp64 = 30,
          .fp64_matrix = 60,
          .fp32 = 60,
          .tf32 = 835.0 / 2,
          .fp16 = 1671.0 / 2,
          .bf16 = 1671.0 / 2,
          .fp8 = 3341.0 / 2,
          .int8 = 3341.0 / 2,
          .bandwidth = bandwidth,
          .source = source};
}

constexpr DeviceRow mi300(std::string_view name, double bandwidth, std::string_view source) {
  return {.name = name,
          .fp64 = 81.7,
          .fp64_matrix = 163.4,
          .fp32 = 163.4,
          .fp32_matrix = 163.4,
          .tf32 = 653.7,
          .fp16 = 1307.4,
          .bf16 = 1307.4,
          .fp8 = 2614.9,
          .int8 = 2614.9,
          .bandwidth = bandwidth,
          .source = source};
}

constexpr std::array kDevices = {
    // Volta
    v100_sxm2("Tesla V100-SXM2-16GB"),
    v100_sxm2("Tesla V100-SXM2-32GB"),
    v100_pcie("Tesla V100-PCIE-16GB"),
    v100_pcie("Tesla V100-PCIE-32GB"),
    DeviceRow{.name = "Tesla V100S-PCIE-32GB",
              .fp64 = 8.2,
              .fp32 = 16.4,
              .fp16 = 130,
              .bandwidth = 1134,
              .source = kV100s},

    // Turing. Reference clocks: the Founders Editions' are some 5 % higher under the same name, and
    // the Quadros' passively cooled editions some 9 % lower.
    DeviceRow{.name = "Tesla T4",
              .fp64 = 8.1 / 32,
              .fp32 = 8.1,
              .fp16 = 65,
              .int8 = 130,
              .bandwidth = 320,
              .source = kT4},
    turing({"GeForce RTX 2060", 1920, 1680, 336, 6}, 4),
    turing({"GeForce RTX 2060", 2176, 1650, 336, 12}, 4),
    turing({"GeForce RTX 2060 SUPER", 2176, 1650, 448}, 4),
    turing({"GeForce RTX 2070", 2304, 1620, 448}, 4),
    turing({"GeForce RTX 2070 SUPER", 2560, 1770, 448}, 4),
    turing({"GeForce RTX 2080", 2944, 1710, 448}, 4),
    turing({"GeForce RTX 2080 SUPER", 3072, 1815, 496}, 4),
    turing({"GeForce RTX 2080 Ti", 4352, 1545, 616}, 4),
    turing({"TITAN RTX", 4608, 1770, 672}, 8),
    turing({"Quadro RTX 4000", 2304, 1545, 416}, 8),
    turing({"Quadro RTX 5000", 3072, 1815, 448}, 8),
    turing({"Quadro RTX 6000", 4608, 1770, 672}, 8),
    turing({"Quadro RTX 8000", 4608, 1770, 672}, 8),

    // Ampere
    a100("A100-SXM4-40GB", 1555),
    a100("A100-SXM4-80GB", 2039),
    a100("A100-PCIE-40GB", 1555),
    a100("A100 80GB PCIe", 1935),
    DeviceRow{.name = "A30",
              .fp64 = 5.2,
              .fp64_matrix = 10.3,
              .fp32 = 10.3,
              .tf32 = 82,
              .fp16 = 165,
              .bf16 = 165,
              .int8 = 330,
              .bandwidth = 933,
              .source = kA30},
    // For float32 sources disagree: 31.5 or 35.
    DeviceRow{.name = "A10G", .fp16 = 70, .bf16 = 70, .bandwidth = 600, .source = kA10g},
    ampere({"A2", 1280, 1770, 200}, 4),
    ampere({"A10", 9216, 1695, 600}, 4),
    ampere({"A40", 10752, 1740, 696}, 4),
    ampere({"RTX A4000", 6144, 1560, 448}, 4),
    ampere({"RTX A4500", 7168, 1650, 640}, 4),
    ampere({"RTX A5000", 8192, 1695, 768}, 4),
    ampere({"RTX A5500", 10240, 1665, 768}, 4),
    ampere({"RTX A6000", 10752, 1800, 768}, 4),
    ampere({"GeForce RTX 3060", 3584, 1777, 240, 8}, 2),
    ampere({"GeForce RTX 3060", 3584, 1777, 360, 12}, 2),
    ampere({"GeForce RTX 3060 Ti", 4864, 1665, 0}, 2),  // GDDR6 or GDDR6X: 448 or 608
    ampere({"GeForce RTX 3070", 5888, 1725, 448}, 2),
    ampere({"GeForce RTX 3070 Ti", 6144, 1770, 608}, 2),
    ampere({"GeForce RTX 3080", 8704, 1710, 760, 10}, 2),
    ampere({"GeForce RTX 3080", 8960, 1710, 912, 12}, 2),
    ampere({"GeForce RTX 3080 Ti", 10240, 1665, 912}, 2),
    ampere({"GeForce RTX 3090", 10496, 1695, 936}, 2),
    ampere({"GeForce RTX 3090 Ti", 10752, 1860, 1008}, 2),
    // CUDA calls every Orin so, and its memory is the board's. Tensor cores: 170 sparse INT8 TOPS.
    DeviceRow{.name = "Orin",
              .memory_gib = 64,
              .fp32 = 5.3,
              .fp16 = 170.0 / 4,
              .int8 = 170.0 / 2,
              .bandwidth = 204.8,
              .source = kOrin},

    // Hopper. GH200 is named by the size of its CPU's memory; for its GPU's bandwidth there was no
    // second source.
    h100("H100 80GB HBM3", 3352, kH100),
    DeviceRow{.name = "H100 PCIe",
              .fp64 = 25.6,
              .fp64_matrix = 51.2,
              .fp32 = 51.2,
              .tf32 = 378,
              .fp16 = 756,
              .bf16 = 756,
              .fp8 = 1513,
              .int8 = 1513,
              .bandwidth = 2039,
              .source = kH100},
    hopper_nvl("H100 NVL", 3900, kH100Nvl),
    h100("H200", 4800, kH200),
    hopper_nvl("H200 NVL", 4800, kH200),
    h100("GH200 120GB", 0, kGh200),
    h100("GH200 480GB", 0, kGh200),
    DeviceRow{.name = "H20",
              .fp32 = 44,
              .tf32 = 74,
              .fp16 = 148,
              .bf16 = 148,
              .fp8 = 296,
              .int8 = 296,
              .bandwidth = 4000,
              .source = kH20},

    // Ada
    DeviceRow{.name = "L4",
              .fp64 = 30.3 / 64,
              .fp32 = 30.3,
              .tf32 = 120.0 / 2,
              .fp16 = 242.0 / 2,
              .bf16 = 242.0 / 2,
              .fp8 = 485.0 / 2,
              .int8 = 485.0 / 2,
              .bandwidth = 300,
              .source = kL4},
    DeviceRow{.name = "L40",
              .fp64 = 90.5 / 64,
              .fp32 = 90.5,
              .tf32 = 90.5,
              .fp16 = 181.05,
              .bf16 = 181.05,
              .fp8 = 362,
              .int8 = 362,
              .bandwidth = 864,
              .source = kL40},
    DeviceRow{.name = "L40S",
              .fp64 = 91.6 / 64,
              .fp32 = 91.6,
              .tf32 = 183,
              .fp16 = 362.05,
              .bf16 = 362.05,
              .fp8 = 733,
              .int8 = 733,
              .bandwidth = 864,
              .source = kL40s},
    ada({"RTX 4000 Ada Generation", 6144, 2175, 360}, 4),
    ada({"RTX 4500 Ada Generation", 7680, 2580, 432}, 4),
    ada({"RTX 5000 Ada Generation", 12800, 2550, 576}, 4),
    ada({"RTX 6000 Ada Generation", 18176, 2505, 960}, 4),
    ada({"GeForce RTX 4060", 3072, 2460, 272}, 2),
    ada({"GeForce RTX 4060 Ti", 4352, 2535, 288}, 2),
    ada({"GeForce RTX 4070", 5888, 2475, 0}, 2),  // GDDR6 or GDDR6X: 480 or 504
    ada({"GeForce RTX 4070 SUPER", 7168, 2475, 504}, 2),
    ada({"GeForce RTX 4070 Ti", 7680, 2610, 504}, 2),
    ada({"GeForce RTX 4070 Ti SUPER", 8448, 2610, 672}, 2),
    ada({"GeForce RTX 4080", 9728, 2505, 716.8}, 2),
    ada({"GeForce RTX 4080 SUPER", 10240, 2550, 736}, 2),
    ada({"GeForce RTX 4090", 16384, 2520, 1008}, 2),

    // Blackwell
    DeviceRow{.name = "B200",
              .fp64 = 37,
              .fp64_matrix = 37,
              .fp32 = 75,
              .tf32 = 1125,
              .fp16 = 2250,
              .bf16 = 2250,
              .fp8 = 4500,
              .int8 = 4500,
              .fp4 = 9000,
              .bandwidth = 7700,
              .source = kB200},
    DeviceRow{.name = "GB200",
              .fp64 = 40,
              .fp64_matrix = 40,
              .fp32 = 80,
              .tf32 = 1250,
              .fp16 = 2500,
              .bf16 = 2500,
              .fp8 = 5000,
              .int8 = 5000,
              .fp4 = 10000,
              .bandwidth = 8000,
              .source = kGb200},
    DeviceRow{.name = "B300 SXM6 AC",  // for FP4 and INT8 its documents disagree
              .fp64 = 1.25,
              .fp64_matrix = 1.25,
              .fp32 = 75,
              .tf32 = 1125,
              .fp16 = 2250,
              .bf16 = 2250,
              .fp8 = 4500,
              .bandwidth = 8000,
              .source = kB300},
    DeviceRow{.name = "GB300",
              .fp64 = 1.3,
              .fp32 = 80,
              .tf32 = 1250,
              .fp16 = 2500,
              .bf16 = 2500,
              .fp8 = 5000,
              .int8 = 165,
              .fp4 = 15000,
              .bandwidth = 8000,
              .source = kGb300},
    blackwell({"RTX PRO 6000 Blackwell Workstation Edition", 24064, 2617, 1792}, 4),
    blackwell({"RTX PRO 6000 Blackwell Max-Q Workstation Edition", 24064, 2280, 1792}, 4),
    blackwell({"GeForce RTX 5060", 3840, 2497, 448}, 2),
    blackwell({"GeForce RTX 5060 Ti", 4608, 2572, 448}, 2),
    blackwell({"GeForce RTX 5070", 6144, 2512, 672}, 2),
    blackwell({"GeForce RTX 5070 Ti", 8960, 2452, 896}, 2),
    blackwell({"GeForce RTX 5080", 10752, 2617, 960}, 2),
    blackwell({"GeForce RTX 5090", 21760, 2407, 1792}, 2),

    // AMD
    DeviceRow{.name = "Instinct MI210",
              .fp64 = 22.6,
              .fp64_matrix = 45.3,
              .fp32 = 22.6,
              .fp32_matrix = 45.3,
              .fp16 = 181,
              .bf16 = 181,
              .int8 = 181,
              .bandwidth = 1638.4,
              .source = kMi210},
    DeviceRow{.name = "Instinct MI250X",
              .fp64 = 47.9 / 2,
              .fp64_matrix = 95.7 / 2,
              .fp32 = 47.9 / 2,
              .fp32_matrix = 95.7 / 2,
              .fp16 = 383.0 / 2,
              .bf16 = 383.0 / 2,
              .int8 = 383.0 / 2,
              .bandwidth = 3276.8 / 2,
              .source = kMi250x},
    mi300("Instinct MI300X", 5300, kMi300x),
    mi300("Instinct MI325X", 6000, kMi325x),

    // Simulated, as in cuda/simgpu/core/device_profile.cc; a test holds them together.
    DeviceRow{.name = "simulated H100-class GPU",
              .simulated = true,
              .fp64 = 34,
              .fp32 = 67,
              .tf32 = 495,
              .fp16 = 990,
              .bf16 = 990,
              .fp8 = 1980,
              .int8 = 1980,
              .bandwidth = 3350,
              .source = kSimulated},
    DeviceRow{.name = "simulated laptop GPU",
              .simulated = true,
              .fp64 = 0.18,
              .fp32 = 11.6,
              .tf32 = 23,
              .fp16 = 46,
              .bf16 = 46,
              .fp8 = 92,
              .int8 = 92,
              .bandwidth = 256,
              .source = kSimulated},
};

}  // namespace

std::span<const DeviceRow> device_table() noexcept { return kDevices; }

}  // namespace layertrace::roofline
