// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/codegen/cuda/device_code.hpp"
#include "tunewright/detail/config.hpp"

/// GPU kernels for programs that do not use this library: source, machine code, and a launcher in C.
namespace tunewright::codegen {

/// Files written by `export_device_code`.
struct ExportedDeviceCode {
  std::string symbol;
  std::filesystem::path source;    ///< `<symbol>.cu`
  std::filesystem::path image;     ///< `<symbol>.cubin` or `<symbol>.ptx`
  std::filesystem::path header;    ///< `<symbol>.h`, for C and C++
  std::filesystem::path launcher;  ///< `<symbol>.c`: compile as C11 or C++11 and link with -ldl
};

namespace cuda {

/// Throws `std::invalid_argument` for a program that no device launches as it is.
void check_launchable(const DeviceProgram& program);

[[nodiscard]] std::string launcher_header(const DeviceCode& code, const std::string& symbol, std::string_view remark);

[[nodiscard]] std::string launcher_source(const DeviceCode& code, const std::string& symbol);

}  // namespace cuda

/// Writes source, machine code, header and launcher into `directory`, which is created if necessary; `symbol` is `name`
/// as a C identifier. The launcher contains the code and loads the CUDA driver at run time. Programs may use launchers
/// of several exported programs. Throws `std::invalid_argument` for a program without machine code, without kernels, or
/// with a grid or blocks beyond those of all devices, and if another export in `directory` declares a name that this
/// one does, or is of a kernel or a network under this name, `std::runtime_error` for a path that cannot be written.
ExportedDeviceCode export_device_code(const DeviceCode& code, std::string_view name,
                                      const std::filesystem::path& directory, std::string_view remark = {});

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include "tunewright/codegen/cuda/launcher_text.hpp"
#include "tunewright/codegen/export.hpp"
#include "tunewright/codegen/exported_names.hpp"
#include "tunewright/loops/target_limits.hpp"

namespace tunewright::codegen::cuda {

TUNEWRIGHT_INLINE void check_launchable(const DeviceProgram& program) {
  if (program.launches.empty())
    throw std::invalid_argument("program '" + program.name + "' has no kernels; export one that computes something");
  const loops::GpuLimits limits;
  for (const DeviceLaunch& launch : program.launches) {
    const auto check = [&](const char* what, const auto& extents, const auto& most) {
      for (std::size_t d = 0; d < 3; ++d) {
        if (extents[d] >= 1 && extents[d] <= most[d]) continue;
        throw std::invalid_argument("kernel '" + launch.symbol + "' has " + std::to_string(extents[d]) + " " + what +
                                    " along " + "xyz"[d] + "; devices launch 1 to " + std::to_string(most[d]) +
                                    ": split its loops in another way");
      }
    };
    check("blocks", launch.grid, limits.max_grid);
    check("threads", launch.block, limits.max_block);
  }
}

TUNEWRIGHT_INLINE std::string launcher_header(const DeviceCode& code, const std::string& symbol,
                                              std::string_view remark) {
  namespace c = codegen::detail;
  const c::BufferTexts buffers = c::c_buffer_texts(code.program.buffers, symbol, c::ElementTypes::ByName);
  const std::vector<std::string> names = c::c_buffer_names(code.program.buffers);
  std::string numbers;
  for (std::size_t b = 0; b < names.size(); ++b)
    numbers += "  " + symbol + "_" + names[b] + " = " + std::to_string(b) + ",\n";
  const std::vector<c::Fill> fills{{"BUFFERS", buffers.lines},
                                   {"NUMBERS", numbers},
                                   {"COUNT", std::to_string(code.program.buffers.size())},
                                   {"BYTES", buffers.bytes},
                                   {"PACKING", buffers.packing},
                                   {"ARCHITECTURE", code.architecture},
                                   {"REMARK", remark.empty() ? "" : ": " + c::c_comment(remark)},
                                   {"GUARD", "TUNEWRIGHT_LAUNCHER_" + symbol + "_H"},
                                   {"SYMBOL", symbol}};
  return c::filled(launcher_header_text, fills);
}

TUNEWRIGHT_INLINE std::string launcher_source(const DeviceCode& code, const std::string& symbol) {
  std::string launches;
  for (const DeviceLaunch& launch : code.program.launches) {
    const auto three = [](const auto& v) {
      return "{" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + "}";
    };
    std::string arguments;
    for (const std::uint32_t argument : launch.arguments)
      arguments += (arguments.empty() ? "" : ", ") + std::to_string(argument);
    launches += "  {\"" + launch.symbol + "\", " + three(launch.grid) + ", " + three(launch.block) + ", " +
                std::to_string(launch.dynamic_shared_bytes) + ", " + std::to_string(launch.arguments.size()) + ", {" +
                (arguments.empty() ? "0" : arguments) + "}},\n";
  }
  std::string roles;  // i, o, w
  for (const KernelBuffer& buffer : code.program.buffers) {
    const bool output = buffer.layout.role == loops::BufferRole::Output;
    roles += output ? 'o' : buffer.layout.role == loops::BufferRole::Temporary ? 'w' : 'i';
  }
  std::string image;
  for (std::size_t i = 0; i < code.image->size(); ++i)
    image += (i % 20 == 0 ? "\n  " : " ") + std::to_string(static_cast<unsigned char>((*code.image)[i])) + ",";
  const std::vector<codegen::detail::Fill> fills{
      {"LAUNCHES", launches}, {"COUNT", std::to_string(code.program.buffers.size())},
      {"ROLES", roles},       {"ARCHITECTURE", code.architecture},
      {"IMAGE", image},       {"SYMBOL", symbol}};
  return codegen::detail::filled(launcher_source_text, fills);
}

}  // namespace tunewright::codegen::cuda

namespace tunewright::codegen {

TUNEWRIGHT_INLINE ExportedDeviceCode export_device_code(const DeviceCode& code, std::string_view name,
                                                        const std::filesystem::path& directory,
                                                        std::string_view remark) {
  if (!code.image || code.image->empty())
    throw std::invalid_argument("program '" + code.program.name + "' has no machine code; export a compiled one");
  cuda::check_launchable(code.program);
  const std::string symbol = detail::c_symbol(name);
  const bool cubin = code.format == DeviceFormat::Cubin;
  ExportedDeviceCode files{symbol, directory / (symbol + ".cu"), directory / (symbol + (cubin ? ".cubin" : ".ptx")),
                           directory / (symbol + ".h"), directory / (symbol + ".c")};
  const std::string header = cuda::launcher_header(code, symbol, remark);
  detail::check_names(directory, symbol, header);
  const std::string launcher = cuda::launcher_source(code, symbol);
  // PTX ends with a zero byte, which is not part of the text.
  const std::size_t size = code.image->size() - (!cubin && code.image->back() == '\0' ? 1 : 0);
  detail::write_file(files.source, code.program.source);
  detail::write_file(files.image, {code.image->data(), size});
  detail::write_file(files.header, header);
  detail::write_file(files.launcher, launcher);
  return files;
}

}  // namespace tunewright::codegen

#endif
