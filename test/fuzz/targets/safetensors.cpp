// SPDX-License-Identifier: Apache-2.0
// A safetensors file. Tensors and metadata that are taken are written again and read equal.
#include <sstream>
#include <stdexcept>
#include <string>

#include "fuzz/fuzz.hpp"
#include "tunewright/data/safetensors.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::istringstream in(std::string(fuzz::text(bytes, size)));
  data::TensorFile file;
  if (!fuzz::accepts<std::runtime_error>([&] { file = data::read_safetensors(in); })) return 0;
  std::stringstream written;
  data::write_safetensors(written, file.tensors, file.metadata);
  const data::TensorFile again = data::read_safetensors(written);
  fuzz::require(again.metadata == file.metadata, "metadata read equal");
  fuzz::require(again.tensors.size() == file.tensors.size(), "no tensor is lost");
  for (const data::Tensor& tensor : file.tensors) fuzz::require(again.at(tensor.name) == tensor, "tensors read equal");
  return 0;
}
