// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/execution_plan.hpp"
#include "tunewright/reference/evaluate.hpp"

/// The file with the constants of an exported network.
///
///   bytes 0-7    "TWWEIGHT"
///   bytes 8-15   version of the format: 1
///   bytes 16-23  identity of its use: network, constants, and the layouts of the kernels
///   bytes 24-31  number of bytes after the header
///   bytes 32-39  checksum of the bytes after the header
///   bytes 40-63  zeros
///   from 64 on   the constants, each padded with zeros to a multiple of 64 bytes
///
/// Numbers are unsigned 64-bit little-endian. The checksum is over 64-bit numbers: from the first value on, s becomes t
/// ^ (t >> 32) with t = (s ^ number) * 0x9e3779b97f4a7c15 modulo 2^64. Each step is bijective in s and in the number,
/// so that a change of a single number is always detected.
namespace tunewright::networks {

inline constexpr std::size_t weights_header_bytes = 64;
inline constexpr std::uint64_t weights_file_version = 1;
inline constexpr std::uint64_t weights_check_sum_start = 0xcbf29ce484222325;
inline constexpr std::uint64_t weights_check_sum_factor = 0x9e3779b97f4a7c15;

/// Equal for files whose constants are interchangeable for an exported network: those of the same graph and layouts.
[[nodiscard]] std::uint64_t weights_identity(std::uint64_t graph_hash, std::span<const PackedConstant> constants);

/// Writes the file, one constant after the other, and the header last, so that an unfinished file is invalid. `values`
/// has the constants, by tensor of the network. Throws `std::runtime_error` for an unwritable path.
/// Cost: a pass over the constants; memory for the largest one.
void write_weights(const std::filesystem::path& path, std::uint64_t identity, std::span<const PackedConstant> constants,
                   const reference::Tensors& values);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <ios>
#include <ostream>
#include <string>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/rounded_up.hpp"
#include "tunewright/core/write_file.hpp"

namespace tunewright::networks::detail {

TUNEWRIGHT_INLINE std::uint64_t little_endian_at(const std::byte* bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 8; i-- > 0;) number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return number;
}

TUNEWRIGHT_INLINE void append_little_endian(std::string& text, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(number >> shift);
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE std::uint64_t weights_identity(std::uint64_t graph_hash, std::span<const PackedConstant> constants) {
  StableHash hash;
  hash.add(graph_hash).add(static_cast<std::uint64_t>(constants.size()));
  for (const PackedConstant& constant : constants) {
    hash.add(static_cast<std::uint64_t>(constant.tensor)).add(static_cast<std::uint64_t>(constant.bytes()));
    for (const loops::PackedDimension& piece : constant.layout.packing)
      hash.add(static_cast<std::uint64_t>(piece.dimension)).add(piece.divisor).add(piece.extent);
  }
  return hash.value();
}

TUNEWRIGHT_INLINE void write_weights(const std::filesystem::path& path, std::uint64_t identity,
                                     std::span<const PackedConstant> constants, const reference::Tensors& values) {
  write_file(path, "check that the folder exists and has room", [&](std::ostream& file) {
    file << std::string(weights_header_bytes, '\0');
    std::uint64_t sum = weights_check_sum_start;
    std::uint64_t bytes = 0;
    std::vector<std::byte> packed;
    for (const PackedConstant& constant : constants) {
      packed.assign(rounded_up(constant.bytes(), kernel_alignment), std::byte{0});
      pack_constant(constant.layout, values[constant.tensor], packed.data());
      for (std::size_t at = 0; at < packed.size(); at += 8) {
        sum = (sum ^ detail::little_endian_at(&packed[at])) * weights_check_sum_factor;
        sum ^= sum >> 32;
      }
      bytes += packed.size();
      file.write(reinterpret_cast<const char*>(packed.data()), static_cast<std::streamsize>(packed.size()));  // NOLINT
    }
    std::string header = "TWWEIGHT";
    for (const std::uint64_t number : {weights_file_version, identity, bytes, sum})
      detail::append_little_endian(header, number);
    file.seekp(0);
    file << header;
  });
}

}  // namespace tunewright::networks

#endif
