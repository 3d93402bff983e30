// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/measurers/nvrtc/device_memory.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"
#include "tunewright/program/element_type.hpp"

/// Right results without a device: the process that runs kernels has the data of its task in memory, expected values
/// among them. For rehearsing whole tuning runs, not for testing kernels.
namespace tunewright::test {

/// The data of the task: the largest of the shared mappings of this process.
inline std::span<const char> task_mapping() {
  std::ifstream maps("/proc/self/maps");
  std::span<const char> largest;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:tunewright") == std::string::npos) continue;
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && end - begin > largest.size())
      largest = {reinterpret_cast<const char*>(begin), end - begin};
  }
  return largest;
}

inline std::size_t allocated_for(std::size_t bytes) {
  return (bytes + 255) / 256 * 256 + 2 * measurers::nvrtc::DeviceMemory::zone;
}

/// Writes one number of `type`.
inline void put(program::ScalarType type, double number, unsigned char* to) {
  program::with_element_type(type, [&]<class T>(T value) {
    value = static_cast<T>(number);
    std::memcpy(to, &value, sizeof value);
  });
}

/// Writes the expected values into the outputs of the task where these are still poisoned. `memory` is what is
/// allocated, oldest first: somewhere in it the inputs and the outputs follow one another.
inline void write_expected(const std::vector<std::pair<std::uint64_t, std::size_t>>& memory) {
  measurers::sandbox::TaskView task;
  try {
    measurers::sandbox::Reader reader(task_mapping());
    task = measurers::sandbox::get_task(reader);
  } catch (const std::exception&) {
    return;  // there is none yet
  }
  std::vector<std::size_t> wanted;
  for (const auto& input : task.inputs) wanted.push_back(allocated_for(input.bytes.size()));
  for (const auto& output : task.outputs) {
    wanted.push_back(
        allocated_for(static_cast<std::size_t>(checked_elements(output.shape)) * program::size_in_bytes(output.type)));
  }
  for (std::size_t first = 0; first + wanted.size() <= memory.size(); ++first) {
    bool all = true;
    for (std::size_t i = 0; i < wanted.size(); ++i) all = all && memory[first + i].second == wanted[i];
    if (!all) continue;
    for (std::size_t o = 0; o < task.outputs.size(); ++o) {
      const auto& output = task.outputs[o];
      auto* to = reinterpret_cast<unsigned char*>(memory[first + task.inputs.size() + o].first +
                                                  measurers::nvrtc::DeviceMemory::zone);
      const std::size_t bytes = program::size_in_bytes(output.type);
      bool poisoned = true;
      for (std::size_t i = 0; i < bytes; ++i) poisoned = poisoned && to[i] == measurers::nvrtc::DeviceMemory::unwritten;
      if (!poisoned) continue;
      std::memset(to, 0, static_cast<std::size_t>(checked_elements(output.shape)) * bytes);
      for (std::size_t i = 0; i < output.values.size(); ++i) {
        const std::size_t place = output.points.empty() ? i : static_cast<std::size_t>(output.points[i]);
        put(output.type, output.values[i], to + place * bytes);
      }
    }
    return;
  }
}

}  // namespace tunewright::test
