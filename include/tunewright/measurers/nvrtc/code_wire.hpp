// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tunewright/codegen/cuda/device_code.hpp"
#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"

/// Serialization of device code for the process that runs it, in place of a kernel's object file.
namespace tunewright::measurers::nvrtc {

[[nodiscard]] codegen::Kernel as_kernel(const codegen::DeviceCode& code);

/// The deserialized code; `image` points into the bytes that were read.
struct CodeView {
  struct Launch {
    codegen::DeviceLaunch launch;
    std::int64_t registers = -1;
  };
  std::string architecture;
  codegen::DeviceFormat format = codegen::DeviceFormat::Cubin;
  std::vector<Launch> launches;
  std::span<const char> image;
};

[[nodiscard]] CodeView get_code(std::span<const char> object);

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(sandbox)

#include "tunewright/measurers/sandbox/wire.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE codegen::Kernel as_kernel(const codegen::DeviceCode& code) {
  sandbox::Writer to;
  to.put_text(code.architecture);
  to.put(code.format);
  to.put(code.program.launches.size());
  for (std::size_t k = 0; k < code.program.launches.size(); ++k) {
    const codegen::DeviceLaunch& launch = code.program.launches[k];
    to.put_text(launch.symbol);
    to.put(launch.grid);
    to.put(launch.block);
    to.put(launch.static_shared_bytes);
    to.put(launch.dynamic_shared_bytes);
    to.put_all(std::span<const std::uint32_t>(launch.arguments));
    to.put(k < code.resources.size() ? code.resources[k].registers : std::int64_t{-1});
  }
  to.put_all(code.image ? std::span<const char>(*code.image) : std::span<const char>());
  codegen::Kernel kernel;
  kernel.symbol = code.program.name;
  kernel.buffers = code.program.buffers;
  kernel.object = std::make_shared<const std::vector<char>>(to.bytes().begin(), to.bytes().end());
  return kernel;
}

TUNEWRIGHT_INLINE CodeView get_code(std::span<const char> object) {
  sandbox::Reader from(object);
  CodeView view;
  view.architecture = from.get_text();
  view.format = from.get<codegen::DeviceFormat>();
  for (auto left = from.get<std::size_t>(); left-- > 0;) {
    CodeView::Launch& entry = view.launches.emplace_back();
    entry.launch.symbol = from.get_text();
    entry.launch.grid = from.get<std::array<std::int64_t, 3>>();
    entry.launch.block = from.get<std::array<std::int64_t, 3>>();
    entry.launch.static_shared_bytes = from.get<std::int64_t>();
    entry.launch.dynamic_shared_bytes = from.get<std::int64_t>();
    const auto arguments = from.get_all<std::uint32_t>();
    entry.launch.arguments.assign(arguments.begin(), arguments.end());
    entry.registers = from.get<std::int64_t>();
  }
  view.image = from.get_all<char>();
  return view;
}

}  // namespace tunewright::measurers::nvrtc

#endif
