// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nvrtc.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda/device_code.hpp"
#include "tunewright/codegen/cuda/program.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"

/// Compiles CUDA C++ to machine code with NVRTC. Needs neither a device nor a driver.
namespace tunewright::codegen {

struct CudaCompileOptions {
  std::string architecture = "sm_80";  ///< of the device, e.g. "sm_90"; see `cuda_architectures`
  DeviceFormat format = DeviceFormat::Cubin;
  std::vector<std::string> flags{};  ///< additional options for `nvrtcCompileProgram`
};

namespace cuda {

[[noreturn]] void throw_nvrtc(nvrtcResult result, const char* call);
inline void check_nvrtc(nvrtcResult result, const char* call) {
  if (result != NVRTC_SUCCESS) throw_nvrtc(result, call);
}

/// An NVRTC program; the destructor destroys it.
class NvrtcProgram {
 public:
  explicit NvrtcProgram(const DeviceProgram& program);
  ~NvrtcProgram() { nvrtcDestroyProgram(&program_); }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  [[nodiscard]] nvrtcResult compile(const std::vector<std::string>& flags);
  [[nodiscard]] std::string log() const;
  [[nodiscard]] std::vector<char> image(DeviceFormat format) const;

 private:
  nvrtcProgram program_ = nullptr;
};

/// The number before `unit` in `line`, e.g. 63 before " registers".
[[nodiscard]] std::optional<std::int64_t> number_before(std::string_view line, std::string_view unit);

/// Parses the assembler's report in a compilation log: the resources of each kernel, in the order of `launches`.
[[nodiscard]] std::vector<KernelResources> resources_of(const std::string& log,
                                                        const std::vector<DeviceLaunch>& launches);

/// A log without the assembler's report, i.e. only warnings and errors.
[[nodiscard]] std::string without_report(const std::string& log);

}  // namespace cuda

/// Architectures for which this NVRTC generates code, oldest first: "sm_75", ...
[[nodiscard]] std::vector<std::string> cuda_architectures();

/// Version of the compiler and its CUDA release.
struct NvrtcVersion {
  int major = 0;
  int minor = 0;
};
[[nodiscard]] NvrtcVersion nvrtc_version();
/// The same as text, e.g. "nvrtc 13.0".
[[nodiscard]] std::string nvrtc_identity();

/// Throws `std::invalid_argument`, with the list of known ones, for an architecture that this NVRTC does not know.
/// Variants such as "sm_90a" are known together with their base.
void check_architecture(const std::string& architecture);

/// Machine code for a program, or a failure: a program that NVRTC rejects is a `DeviceCompileError` with the first
/// message. Throws `std::invalid_argument` for an unknown architecture and `std::runtime_error` for a broken toolkit.
/// Thread-safe. Cost: 50 to 500 ms.
[[nodiscard]] std::variant<DeviceCode, Failure> compile_cuda(DeviceProgram program, const CudaCompileOptions& options);

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(nvrtc)

#include "tunewright/core/target.hpp"

namespace tunewright::codegen::cuda {

TUNEWRIGHT_INLINE void throw_nvrtc(nvrtcResult result, const char* call) {
  throw std::runtime_error(std::string(call) + " of NVRTC failed: " + nvrtcGetErrorString(result) +
                           "; is the CUDA toolkit complete?");
}

TUNEWRIGHT_INLINE NvrtcProgram::NvrtcProgram(const DeviceProgram& program) {
  const std::string file = program.name + ".cu";
  check_nvrtc(nvrtcCreateProgram(&program_, program.source.c_str(), file.c_str(), 0, nullptr, nullptr),
              "nvrtcCreateProgram");
}

TUNEWRIGHT_INLINE nvrtcResult NvrtcProgram::compile(const std::vector<std::string>& flags) {
  std::vector<const char*> pointers;
  for (const std::string& flag : flags) pointers.push_back(flag.c_str());
  return nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
}

TUNEWRIGHT_INLINE std::string NvrtcProgram::log() const {
  std::size_t size = 0;
  check_nvrtc(nvrtcGetProgramLogSize(program_, &size), "nvrtcGetProgramLogSize");
  std::string text(size, '\0');
  check_nvrtc(nvrtcGetProgramLog(program_, text.data()), "nvrtcGetProgramLog");
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  return text;
}

TUNEWRIGHT_INLINE std::vector<char> NvrtcProgram::image(DeviceFormat format) const {
  const bool cubin = format == DeviceFormat::Cubin;
  std::size_t size = 0;
  check_nvrtc(cubin ? nvrtcGetCUBINSize(program_, &size) : nvrtcGetPTXSize(program_, &size), "reading the size");
  std::vector<char> bytes(size);
  check_nvrtc(cubin ? nvrtcGetCUBIN(program_, bytes.data()) : nvrtcGetPTX(program_, bytes.data()), "reading the code");
  return bytes;
}

TUNEWRIGHT_INLINE std::optional<std::int64_t> number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0) --begin;
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(line.data() + begin, line.data() + end, value);
  if (error != std::errc() || stop != line.data() + end) return std::nullopt;
  return value;
}

TUNEWRIGHT_INLINE std::vector<KernelResources> resources_of(const std::string& log,
                                                            const std::vector<DeviceLaunch>& launches) {
  std::vector<KernelResources> all(launches.size());
  KernelResources* current = nullptr;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line(log.data() + begin, end - begin);
    begin = end + 1;
    if (line.find("Compiling entry function") != std::string_view::npos) {
      current = nullptr;
      for (std::size_t k = 0; k < launches.size(); ++k) {
        if (line.find("'" + launches[k].symbol + "'") != std::string_view::npos) current = &all[k];
      }
    }
    if (current == nullptr) continue;
    const auto take = [&](std::int64_t& to, std::string_view unit) {
      if (const auto value = number_before(line, unit)) to = *value;
    };
    take(current->registers, " registers");
    take(current->stack_bytes, " bytes stack frame");
    take(current->spill_store_bytes, " bytes spill stores");
    take(current->spill_load_bytes, " bytes spill loads");
    take(current->static_shared_bytes, " bytes smem");
  }
  return all;
}

TUNEWRIGHT_INLINE std::string without_report(const std::string& log) {
  std::string kept;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    begin = end + 1;
    const bool report = line.rfind("ptxas info", 0) == 0 || line.rfind("ptxas         .", 0) == 0;
    if (!report && !(kept.empty() && line.empty())) kept += line + "\n";
  }
  while (!kept.empty() && kept.back() == '\n') kept.pop_back();
  return kept;
}

}  // namespace tunewright::codegen::cuda

namespace tunewright::codegen {

TUNEWRIGHT_INLINE std::vector<std::string> cuda_architectures() {
  int count = 0;
  cuda::check_nvrtc(nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> numbers(static_cast<std::size_t>(count));
  cuda::check_nvrtc(nvrtcGetSupportedArchs(numbers.data()), "nvrtcGetSupportedArchs");
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::string> names;
  for (const int number : numbers) names.push_back("sm_" + std::to_string(number));
  return names;
}

TUNEWRIGHT_INLINE NvrtcVersion nvrtc_version() {
  NvrtcVersion version;
  cuda::check_nvrtc(nvrtcVersion(&version.major, &version.minor), "nvrtcVersion");
  return version;
}

TUNEWRIGHT_INLINE std::string nvrtc_identity() {
  const NvrtcVersion version = nvrtc_version();
  return "nvrtc " + std::to_string(version.major) + "." + std::to_string(version.minor);
}

TUNEWRIGHT_INLINE void check_architecture(const std::string& architecture) {
  std::string base = architecture;
  if (!base.empty() && (base.back() == 'a' || base.back() == 'f')) base.pop_back();
  const std::vector<std::string> known = cuda_architectures();
  if (std::find(known.begin(), known.end(), base) != known.end()) return;
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  throw std::invalid_argument("'" + architecture + "' is no architecture that " + nvrtc_identity() +
                              " generates code for; give one of " + list);
}

TUNEWRIGHT_INLINE std::variant<DeviceCode, Failure> compile_cuda(DeviceProgram program,
                                                                 const CudaCompileOptions& options) {
  check_architecture(options.architecture);
  if (Target::compute_capability(options.architecture) < program.min_compute_capability) {
    return Failure{Fault::DeviceCompileError,
                   "'" + program.name + "' needs compute capability " +
                       std::to_string(program.min_compute_capability / 10) + "." +
                       std::to_string(program.min_compute_capability % 10) + "; " + options.architecture +
                       " is older: compile for a newer device, or schedule without what it lacks"};
  }
  if (program.multiplies_by_warp_groups && options.architecture != Target::warp_group_architecture) {
    return Failure{Fault::DeviceCompileError,
                   "'" + program.name + "' multiplies by warp groups, for which there is code for " +
                       std::string(Target::warp_group_architecture) + " alone, not for " + options.architecture +
                       ": compile for that, or schedule without wgmma"};
  }
  const auto start = std::chrono::steady_clock::now();
  const bool cubin = options.format == DeviceFormat::Cubin;
  std::vector<std::string> flags{
      "--gpu-architecture=" + (cubin ? options.architecture : "compute" + options.architecture.substr(2)),
      "--std=c++17"};
  if (cubin) flags.emplace_back("--ptxas-options=-v");
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());

  cuda::NvrtcProgram compilation(program);
  const nvrtcResult result = compilation.compile(flags);
  const std::string log = compilation.log();
  if (result == NVRTC_ERROR_INVALID_OPTION) throw std::invalid_argument(cuda::without_report(log));
  if (result != NVRTC_SUCCESS) {
    const std::string reason = cuda::without_report(log);
    return Failure{Fault::DeviceCompileError, reason.empty() ? nvrtcGetErrorString(result) : reason};
  }
  DeviceCode code;
  code.architecture = options.architecture;
  code.format = options.format;
  code.image = std::make_shared<const std::vector<char>>(compilation.image(options.format));
  if (cubin) code.resources = cuda::resources_of(log, program.launches);
  code.log = cuda::without_report(log);
  code.program = std::move(program);
  code.compile_time = std::chrono::steady_clock::now() - start;
  return code;
}

}  // namespace tunewright::codegen

#endif
