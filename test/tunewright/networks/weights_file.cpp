// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/weights_file.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

namespace {

using namespace tunewright;

networks::PackedConstant constant(networks::TensorId tensor, std::vector<std::int64_t> shape,
                                  std::vector<loops::PackedDimension> packing = {}) {
  networks::PackedConstant result;
  result.tensor = tensor;
  result.layout.role = loops::BufferRole::Constant;
  result.layout.shape = std::move(shape);
  result.layout.packing = std::move(packing);
  return result;
}

std::uint64_t number_at(const std::string& bytes, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i)
    number += static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return number;
}

}  // namespace

TEST_CASE("a file is its header, and each constant as kernels read it, filled up to 64 bytes") {
  // Three numbers as they are, and a 2x3 matrix in columns of 2 rows, read twice: 12 and 24 bytes.
  const std::vector<networks::PackedConstant> constants{constant(1, {3}), constant(0, {2, 3}, {{1, 1, 3}, {0, 1, 2}})};
  const networks::WeightsLayout layout = networks::weights_layout(constants);
  CHECK(layout.offsets == std::vector<std::size_t>{0, 64});
  CHECK(layout.bytes == 128);

  reference::Tensors values(2);
  values[0] = reference::Array(program::ScalarType::Float32, {2, 3});
  values[1] = reference::Array(program::ScalarType::Float32, {3});
  for (std::size_t i = 0; i < 6; ++i) values[0].set(i, static_cast<double>(i));
  for (std::size_t i = 0; i < 3; ++i) values[1].set(i, 0.5 + static_cast<double>(i));
  const support::TemporaryFolder folder;
  networks::write_weights(folder.file("w"), 77, constants, values);
  std::ifstream file(folder.file("w"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(bytes.size() == 64 + 128);
  CHECK(bytes.substr(0, 8) == "TWWEIGHT");
  CHECK(number_at(bytes, 8) == 1);
  CHECK(number_at(bytes, 16) == 77);
  CHECK(number_at(bytes, 24) == 128);
  for (const std::size_t at : {40, 48, 56, 64 + 16, 64 + 64 + 24}) CHECK(number_at(bytes, at) == 0);
  float read[8];
  std::memcpy(read, bytes.data() + 64, 12);
  for (int i = 0; i < 3; ++i) CHECK(read[i] == 0.5F + static_cast<float>(i));
  std::memcpy(read, bytes.data() + 128, 24);
  const float columns[] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 6; ++i) CHECK(read[i] == columns[i]);

  std::uint64_t sum = 0xcbf29ce484222325;
  for (std::size_t at = 64; at < bytes.size(); at += 8) {
    const std::uint64_t t = (sum ^ number_at(bytes, at)) * 0x9e3779b97f4a7c15;
    sum = t ^ (t >> 32);
  }
  CHECK(number_at(bytes, 32) == sum);
}

TEST_CASE("files are told apart by graph, constants and the order in which these are read") {
  const std::vector<networks::PackedConstant> rows{constant(0, {2, 3})};
  const std::vector<networks::PackedConstant> columns{constant(0, {2, 3}, {{1, 1, 3}, {0, 1, 2}})};
  const std::vector<networks::PackedConstant> other{constant(1, {2, 3})};
  const std::uint64_t identity = networks::weights_identity(5, rows);
  CHECK(networks::weights_identity(5, rows) == identity);
  CHECK(networks::weights_identity(6, rows) != identity);
  CHECK(networks::weights_identity(5, columns) != identity);
  CHECK(networks::weights_identity(5, other) != identity);
  CHECK(networks::weights_identity(5, {}) != identity);
}

TEST_CASE("a path that cannot be written is named") {
  CHECK_THROWS_WITH_AS(networks::write_weights("/no/such/folder/w", 1, {}, {}),
                       "cannot write '/no/such/folder/w'; check that the folder exists and has room",
                       std::runtime_error);
}
