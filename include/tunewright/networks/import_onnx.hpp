// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "tunewright/networks/onnx/convert.hpp"
#include "tunewright/networks/onnx/read_model.hpp"

namespace tunewright::networks {

/// A network from an ONNX file, as `torch.onnx.export` and `onnx.helper` write them, with its weights. Inputs and
/// outputs keep the shapes of the file, except that int64 becomes int32; in between images are channels last.
///
/// Errors: those of `onnx::read_model` and `onnx::convert`; among them `UnsupportedModel`, which lists every node that
/// cannot be imported with what to do about it.
/// Cost: reading the file, and what of it can be computed ahead of time; seconds for a hundred million weights.
/// Determinism: a function of the file and the options.
[[nodiscard]] inline ImportedNetwork import_onnx(const std::filesystem::path& path, const OnnxOptions& options = {}) {
  return onnx::convert(onnx::read_model(path, options.most_file_bytes), options);
}

}  // namespace tunewright::networks
