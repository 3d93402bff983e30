// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
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
  std::filesystem::path launcher;  ///< `<symbol>.c`: compile as C11 and link with -ldl
};

namespace cuda {

/// Replaces every occurrence of `from` in `text`.
void replace_all(std::string& text, std::string_view from, std::string_view to);

[[nodiscard]] std::string launcher_header(const DeviceCode& code, const std::string& symbol, std::string_view remark);

[[nodiscard]] std::string launcher_source(const DeviceCode& code, const std::string& symbol);

}  // namespace cuda

/// Writes source, machine code, header and launcher into `directory`, which is created if necessary; `symbol` is `name`
/// as a C identifier. The launcher contains the code and loads the CUDA driver at run time. Throws
/// `std::invalid_argument` for a program without machine code, `std::runtime_error` for a path that cannot be written.
ExportedDeviceCode export_device_code(const DeviceCode& code, std::string_view name,
                                      const std::filesystem::path& directory, std::string_view remark = {});

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include "tunewright/codegen/cuda/launcher_text.hpp"
#include "tunewright/codegen/export.hpp"

namespace tunewright::codegen::cuda {

TUNEWRIGHT_INLINE void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

TUNEWRIGHT_INLINE std::string launcher_header(const DeviceCode& code, const std::string& symbol,
                                              std::string_view remark) {
  namespace c = codegen::detail;
  const std::vector<std::string> names = c::c_buffer_names(code.program.buffers);
  std::string lines;
  std::string numbers;
  std::string bytes;
  std::string packing;
  for (std::size_t b = 0; b < code.program.buffers.size(); ++b) {
    const loops::Buffer& layout = code.program.buffers[b].layout;
    static constexpr std::string_view roles[] = {"input", "constant", "output", "workspace"};
    const bool argument = layout.role != loops::BufferRole::Temporary;
    lines += " *   " + std::to_string(b) + "  " + std::string(roles[static_cast<std::size_t>(layout.role)]) + " " +
             std::string(program::name(layout.type)) + " " + c::c_comment(layout.name) +
             c::c_extents(argument ? layout.shape : layout.physical_shape());
    if (argument && !layout.packing.empty()) {
      lines += ", packed: " + symbol + "_pack_" + names[b] + "() fills it";
      packing += "\n" + c::c_packing(symbol, names[b], layout);
    }
    lines += "\n";
    numbers += "  " + symbol + "_" + names[b] + " = " + std::to_string(b) + ",\n";
    bytes += (b == 0 ? "" : ", ") + std::to_string(code.program.buffers[b].bytes());
  }
  std::string text(launcher_header_text);
  replace_all(text, "@BUFFERS@", lines);
  replace_all(text, "@NUMBERS@", numbers);
  replace_all(text, "@COUNT@", std::to_string(code.program.buffers.size()));
  replace_all(text, "@BYTES@", bytes);
  replace_all(text, "@PACKING@", packing);
  replace_all(text, "@ARCHITECTURE@", code.architecture);
  replace_all(text, "@REMARK@", remark.empty() ? "" : ": " + c::c_comment(remark));
  replace_all(text, "@GUARD@", "TUNEWRIGHT_LAUNCHER_" + symbol + "_H");
  replace_all(text, "@SYMBOL@", symbol);
  return text;
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
  std::string text(launcher_source_text);
  replace_all(text, "@LAUNCHES@", launches);
  replace_all(text, "@LAUNCH_COUNT@", std::to_string(code.program.launches.size()));
  replace_all(text, "@COUNT@", std::to_string(code.program.buffers.size()));
  replace_all(text, "@ROLES@", roles);
  replace_all(text, "@ARCHITECTURE@", code.architecture);
  replace_all(text, "@IMAGE@", image);
  replace_all(text, "@SYMBOL@", symbol);
  return text;
}

}  // namespace tunewright::codegen::cuda

namespace tunewright::codegen {

TUNEWRIGHT_INLINE ExportedDeviceCode export_device_code(const DeviceCode& code, std::string_view name,
                                                        const std::filesystem::path& directory,
                                                        std::string_view remark) {
  if (!code.image || code.image->empty())
    throw std::invalid_argument("program '" + code.program.name + "' has no machine code; export a compiled one");
  const std::string symbol = detail::c_symbol(name);
  const bool cubin = code.format == DeviceFormat::Cubin;
  ExportedDeviceCode files{symbol, directory / (symbol + ".cu"), directory / (symbol + (cubin ? ".cubin" : ".ptx")),
                           directory / (symbol + ".h"), directory / (symbol + ".c")};
  const std::string header = cuda::launcher_header(code, symbol, remark);
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
