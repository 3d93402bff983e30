// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "tunewright/networks/onnx/convert.hpp"
#include "tunewright/networks/onnx/read_model.hpp"

namespace tunewright::networks {

/// Imports a network with its weights from an ONNX file written by `torch.onnx.export` or `onnx.helper`. Inputs and
/// outputs keep the shapes of the file, except that int64 becomes int32; internally, images are channels last.
///
/// Errors: those of `onnx::read_model` and `onnx::convert`, among them `UnsupportedModel`, which lists every
///         unsupported node with a remedy.
/// Cost: reading the file and constant folding; seconds for a hundred million weights.
/// Determinism: a function of the file and the options.
[[nodiscard]] inline ImportedNetwork import_onnx(const std::filesystem::path& path, const OnnxOptions& options = {}) {
  return onnx::convert(onnx::read_model(path, options.most_file_bytes), options);
}

}  // namespace tunewright::networks
