// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/onnx/model.hpp"
#include "tunewright/networks/onnx/value.hpp"

namespace tunewright::networks::onnx {

/// A feature of a node that no operator supports.
struct Unsupported {
  std::string node;
  std::string op;
  std::string attribute;  ///< or input; "" where it is the operator as a whole
  std::string reason;
  std::string remedy;
};

/// Thrown by operators; the converter collects them.
struct UnsupportedError : std::runtime_error {
  explicit UnsupportedError(Unsupported w) : std::runtime_error(w.reason), what_is(std::move(w)) {}
  Unsupported what_is;
};

/// A node with its input values.
struct Call {
  const Node& node;
  std::int64_t opset = 0;
  std::vector<const Value*> inputs;  ///< null for one that is left out

  [[nodiscard]] bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  /// Throws `std::invalid_argument` for an omitted input.
  [[nodiscard]] const Value& input(std::size_t i) const;
  [[nodiscard]] std::vector<Value> all_inputs() const;

  [[nodiscard]] bool has(const std::string& attribute) const { return node.attributes.contains(attribute); }
  /// An attribute, or the default for an omitted one. Throws `std::invalid_argument` for an attribute of another kind.
  template <class T>
  [[nodiscard]] T attribute(const std::string& name, T otherwise) const {
    const auto place = node.attributes.find(name);
    if (place == node.attributes.end()) return otherwise;
    if (const T* value = std::get_if<T>(&place->second)) return *value;
    wrong_kind(name);
  }
  [[nodiscard]] std::int64_t whole(const std::string& name, std::int64_t otherwise) const {
    return attribute<std::int64_t>(name, otherwise);
  }
  /// Integers that are an attribute in old versions of the operator and an input in new ones; empty if neither is
  /// given.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(const std::string& attribute,
                                                                  std::size_t input) const;
  /// Integers of an input that must be constant. `what` is its name in the specification.
  [[nodiscard]] std::vector<std::int64_t> known_integers(std::size_t input, const std::string& what) const;
  /// One number of such an input.
  [[nodiscard]] double known_number(std::size_t input, const std::string& what) const;

  /// A dimension index for a tensor of `rank` dimensions; negative ones count from the end. Throws
  /// `std::invalid_argument`.
  [[nodiscard]] std::size_t dimension(std::int64_t wanted, std::size_t rank) const;

  [[noreturn]] void unsupported(const std::string& attribute, const std::string& reason,
                                const std::string& remedy) const;
  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void wrong_kind(const std::string& attribute) const;
};

/// Adds a node's computation to the graph, and returns its outputs.
using Operator = std::function<std::vector<Value>(Emitter&, const Call&)>;
/// Operators by their names in the specification.
using Operators = std::map<std::string, Operator, std::less<>>;

}  // namespace tunewright::networks::onnx

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <cmath>

#include "tunewright/core/number_text.hpp"

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE void Call::refuse(const std::string& what) const {
  throw std::invalid_argument("node '" + node.name + "' (" + node.op + "): " + what);
}

TUNEWRIGHT_INLINE void Call::wrong_kind(const std::string& attribute) const {
  refuse("attribute '" + attribute + "' is of another kind than the specification says; write the file anew");
}

TUNEWRIGHT_INLINE void Call::unsupported(const std::string& attribute, const std::string& reason,
                                         const std::string& remedy) const {
  throw UnsupportedError({node.name, node.op, attribute, reason, remedy});
}

TUNEWRIGHT_INLINE const Value& Call::input(std::size_t i) const {
  if (!has(i)) refuse("input " + std::to_string(i) + " is left out; the operator needs it");
  return *inputs[i];
}

TUNEWRIGHT_INLINE std::vector<Value> Call::all_inputs() const {
  std::vector<Value> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) all.push_back(input(i));
  return all;
}

TUNEWRIGHT_INLINE std::vector<std::int64_t> Call::known_integers(std::size_t i, const std::string& what) const {
  const Value& value = input(i);
  if (!value.known) {
    unsupported(what, "depends on what the network is given",
                "give all shapes in options.shapes, or make it a constant in the model");
  }
  std::vector<std::int64_t> numbers;
  for (const double number : known_elements(value)) {
    if (!(std::abs(number) <= 0x1p53) || std::trunc(number) != number)
      refuse(what + " has the element " + number_text(number) + "; give whole numbers of at most 2^53");
    numbers.push_back(static_cast<std::int64_t>(number));
  }
  return numbers;
}

TUNEWRIGHT_INLINE double Call::known_number(std::size_t i, const std::string& what) const {
  const Value& value = input(i);
  if (!value.known) {
    unsupported(what, "depends on what the network is given", "make it a constant in the model");
  }
  const std::vector<double> numbers = known_elements(value);
  if (numbers.size() != 1) refuse(what + " has " + std::to_string(numbers.size()) + " elements; give one number");
  return numbers[0];
}

TUNEWRIGHT_INLINE std::optional<std::vector<std::int64_t>> Call::integers(const std::string& name,
                                                                          std::size_t input) const {
  if (has(name)) return attribute<std::vector<std::int64_t>>(name, {});
  if (has(input)) return known_integers(input, name);
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::size_t Call::dimension(std::int64_t wanted, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (wanted < -count || wanted >= count) {
    refuse("dimension " + std::to_string(wanted) + " does not exist in a tensor of rank " + std::to_string(rank));
  }
  return static_cast<std::size_t>(wanted < 0 ? wanted + count : wanted);
}

}  // namespace tunewright::networks::onnx

#endif
