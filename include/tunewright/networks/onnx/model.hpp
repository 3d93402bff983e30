// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/program/scalar_type.hpp"
#include "tunewright/reference/array.hpp"

/// ONNX models as plain data, and their conversion to compute graphs. Only `read_model.hpp` uses files and protobuf.
///
/// Specification: the intermediate representation and the operators of ONNX, https://onnx.ai/onnx/repo-docs/IR.html and
/// https://onnx.ai/onnx/operators/.
namespace tunewright::networks::onnx {

using program::ScalarType;

/// Elements of a known value: a weight, or a value computed only from weights and shapes. Row-major, as in the file.
struct NamedArray {
  std::string name;
  reference::Array array;
};
using SharedArray = std::shared_ptr<const NamedArray>;

/// An int64 of a file as the importer keeps it, within -2^53 .. 2^53. Numbers at the ends of the type mean "as far as
/// possible", and computations with them use doubles, which hold every whole number up to there.
[[nodiscard]] constexpr std::int64_t kept_integer(std::int64_t number) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  return std::clamp(number, -most, most);
}

/// An attribute of a kind that no supported operator has, such as a graph.
struct UnsupportedAttribute {
  std::string kind;
};

using AttributeValue = std::variant<UnsupportedAttribute, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                    std::vector<double>, SharedArray>;

struct Node {
  std::string name;                 ///< of the file, or made up from the number of the node: unique enough to be found
  std::string op;                   ///< "Conv"
  std::string domain;               ///< "" for the operators of ONNX itself
  std::vector<std::string> inputs;  ///< names of tensors; "" for one that is left out
  std::vector<std::string> outputs;
  std::map<std::string, AttributeValue> attributes;
};

/// An extent of an input: a number, or the name of a variable extent.
struct Dimension {
  std::optional<std::int64_t> extent;
  std::string symbol{};
};

struct ModelInput {
  std::string name;
  ScalarType type = ScalarType::Float32;
  std::vector<Dimension> shape;
  bool has_shape = true;  ///< false: the file leaves open even how many dimensions there are
};

struct Model {
  std::string name;
  std::int64_t opset = 0;  ///< version of ONNX's own operators
  std::vector<Node> nodes;
  std::map<std::string, SharedArray> constants;
  std::vector<ModelInput> inputs;  ///< those without a value in the file
  std::vector<std::string> outputs;
};

}  // namespace tunewright::networks::onnx
