// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/onnx/model.hpp"

namespace tunewright::networks::onnx {

/// The contents of an ONNX file: nodes, weights (including external ones), inputs and outputs of its main graph.
///
/// The file is not trusted. Errors: `std::invalid_argument` with file and tensor, for a file that cannot be read, is
/// truncated, nested deeper than protobuf allows (100 levels), larger than `most_bytes`, or needs many times its size
/// in memory; for tensors that take more than `most_bytes` of one other file together; for weights whose bytes do not
/// match their shape, that are NaN, or that are outside of the folder of the file; and for element types that tensor
/// programs do not have.
/// Cost: reading the file, and twice its size in memory meanwhile.
[[nodiscard]] Model read_model(const std::filesystem::path& path, double most_bytes = 0x1p31);

}  // namespace tunewright::networks::onnx

#if TUNEWRIGHT_DEFINES(onnx)

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

// ONNX's package includes the machine learning dialect; the macros tell its header so.
#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/core/checked_elements.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/program/operators/checks.hpp"

namespace tunewright::networks::onnx::detail {

/// Remaining memory for messages on this thread; the blocks of protobuf's arenas count against it.
TUNEWRIGHT_INLINE std::size_t& message_budget() {
  static thread_local std::size_t bytes = 0;
  return bytes;
}

TUNEWRIGHT_INLINE void* message_block(std::size_t bytes) {
  if (bytes > message_budget()) throw std::bad_alloc();
  message_budget() -= bytes;
  return ::operator new(bytes);
}

TUNEWRIGHT_INLINE void release_message_block(void* block, std::size_t) { ::operator delete(block); }

/// Reads one file into plain data.
class ModelReader {
 public:
  ModelReader(std::filesystem::path path, double most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {}

  Model read();

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw std::invalid_argument("'" + path_.string() + "': " + what);
  }
  [[nodiscard]] std::uintmax_t checked_size(const std::filesystem::path& file) const;
  [[nodiscard]] std::optional<ScalarType> scalar_type(std::int32_t type) const;
  [[nodiscard]] SharedArray array(const ::onnx::TensorProto& tensor, const std::string& name) const;
  /// Bytes of a tensor in an external file.
  void read_external(const ::onnx::TensorProto& tensor, const std::string& name, reference::Array& into) const;
  template <class Numbers>
  void take(const Numbers& numbers, const std::string& name, reference::Array& into) const;
  [[nodiscard]] AttributeValue attribute(const ::onnx::AttributeProto& proto, const std::string& node) const;
  [[nodiscard]] Node node(const ::onnx::NodeProto& proto, int number) const;
  [[nodiscard]] ModelInput input(const ::onnx::ValueInfoProto& proto) const;

  std::filesystem::path path_;
  double most_bytes_;
  mutable std::map<std::filesystem::path, double> read_;  // bytes of tensors from each other file
};

TUNEWRIGHT_INLINE std::uintmax_t ModelReader::checked_size(const std::filesystem::path& file) const {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    refuse((file == path_ ? "it" : "'" + file.string() + "', which its weights are in,") +
           " is no file that can be read; give the path of one");
  }
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error || static_cast<double>(bytes) > most_bytes_) {
    refuse("'" + file.string() + "' has " + std::to_string(bytes) + " bytes, more than options.most_file_bytes, " +
           number_text(most_bytes_) + "; raise it if this is meant");
  }
  return bytes;
}

TUNEWRIGHT_INLINE std::optional<ScalarType> ModelReader::scalar_type(std::int32_t type) const {
  switch (type) {
    case ::onnx::TensorProto::FLOAT: return ScalarType::Float32;
    case ::onnx::TensorProto::DOUBLE: return ScalarType::Float64;
    case ::onnx::TensorProto::FLOAT16: return ScalarType::Float16;
    case ::onnx::TensorProto::BFLOAT16: return ScalarType::BFloat16;
    case ::onnx::TensorProto::INT32: return ScalarType::Int32;
    case ::onnx::TensorProto::INT64: return ScalarType::Int64;
    case ::onnx::TensorProto::INT8: return ScalarType::Int8;
    case ::onnx::TensorProto::UINT8: return ScalarType::UInt8;
    case ::onnx::TensorProto::BOOL: return ScalarType::Bool;
    default: return std::nullopt;
  }
}

TUNEWRIGHT_INLINE void ModelReader::read_external(const ::onnx::TensorProto& tensor, const std::string& name,
                                                  reference::Array& into) const {
  const std::string who = "tensor '" + name + "' lies in another file: ";
  std::string location;
  std::uintmax_t offset = 0;
  std::uintmax_t length = into.size_in_bytes();
  for (const auto& entry : tensor.external_data()) {
    const auto number = [&] {
      const std::string& text = entry.value();
      const bool digits = !text.empty() && text.size() < 16 &&
                          std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) refuse(who + entry.key() + " is '" + text + "', which is no number of bytes");
      return static_cast<std::uintmax_t>(std::stoull(text));
    };
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number();
    if (entry.key() == "length") length = number();
  }
  const std::filesystem::path relative(location);
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path_).parent_path());
  const std::filesystem::path file = std::filesystem::weakly_canonical(folder / relative);
  const bool inside = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
  if (location.empty() || relative.is_absolute() || !inside) {
    refuse(who + "'" + location +
           "' leads out of the folder of the model, which is not followed; keep the files of a "
           "model in one folder");
  }
  if (length != into.size_in_bytes()) {
    refuse(who + std::to_string(length) + " bytes are given where its shape takes " +
           std::to_string(into.size_in_bytes()));
  }
  if (const std::uintmax_t size = checked_size(file); offset > size || length > size - offset) {
    refuse(who + "'" + location + "' has " + std::to_string(size) + " bytes, and those from " + std::to_string(offset) +
           " to " + std::to_string(offset + length) +
           " are asked for; is it the file that was written with the model?");
  }
  // Tensors may share bytes, but without a limit a small file could be read into any amount of memory.
  if (double& read = read_[file]; (read += static_cast<double>(length)) > most_bytes_) {
    refuse(who + "with this one, tensors of " + number_text(read) + " bytes are read from '" + location +
           "', more than options.most_file_bytes, " + number_text(most_bytes_) + "; raise it if this is meant");
  }
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(static_cast<char*>(into.data()), static_cast<std::streamsize>(length));
  if (!stream) refuse(who + "'" + location + "' cannot be read");
}

template <class Numbers>
void ModelReader::take(const Numbers& numbers, const std::string& name, reference::Array& into) const {
  const bool bits = is_narrow_float(into.type());  // 16-bit numbers are kept as their bits
  const bool fits = static_cast<std::size_t>(numbers.size()) == into.size();
  if (!fits) {
    refuse("tensor '" + name + "' has " + std::to_string(numbers.size()) + " elements where its shape has " +
           std::to_string(into.size()) + "; the file is damaged");
  }
  for (int i = 0; i < numbers.size(); ++i) {
    const auto place = static_cast<std::size_t>(i);
    if (bits) {
      const auto element = static_cast<std::uint16_t>(numbers[i]);
      std::memcpy(static_cast<std::byte*>(into.data()) + 2 * place, &element, sizeof element);
    } else {
      into.visit([&](const auto& elements) {
        using T = typename std::decay_t<decltype(elements)>::value_type;
        if constexpr (std::is_arithmetic_v<T>) elements[place] = static_cast<T>(numbers[i]);
      });
    }
  }
}

TUNEWRIGHT_INLINE SharedArray ModelReader::array(const ::onnx::TensorProto& tensor, const std::string& name) const {
  const std::optional<ScalarType> type = scalar_type(tensor.data_type());
  if (!type) {
    refuse(
        "tensor '" + name + "' has elements of type number " + std::to_string(tensor.data_type()) +
        ", which tensor programs do not have; use float, double, float16, bfloat16, int8, uint8, int32, int64 or bool");
  }
  std::vector<std::int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  double bytes = static_cast<double>(program::size_in_bytes(*type));
  try {
    bytes *= static_cast<double>(checked_elements(shape, "tensor '" + name + "'"));
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  const bool external = tensor.data_location() == ::onnx::TensorProto::EXTERNAL;
  // Memory is allocated only for what the file can contain: every element takes at least one byte of it.
  const double held = external ? most_bytes_
                               : static_cast<double>(tensor.raw_data().size()) +
                                     8.0 * (tensor.float_data_size() + tensor.int32_data_size() +
                                            tensor.int64_data_size() + tensor.double_data_size());
  if (bytes > held) {
    refuse("tensor '" + name + "' of shape " + program::operators::detail::shape_text(shape) + " takes " +
           number_text(bytes) + " bytes and the file has no more than " + number_text(held) +
           " for it; it is damaged, or the weights are those of another model");
  }
  NamedArray result{name, reference::Array(*type, shape)};
  reference::Array& elements = result.array;
  if (external) {
    read_external(tensor, name, elements);
  } else if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != elements.size_in_bytes()) {
      refuse("tensor '" + name + "' of shape " + program::operators::detail::shape_text(shape) + " takes " +
             std::to_string(elements.size_in_bytes()) + " bytes and has " + std::to_string(tensor.raw_data().size()) +
             "; the file is damaged, or the weights are those of another model");
    }
    if (elements.size() != 0) std::memcpy(elements.data(), tensor.raw_data().data(), elements.size_in_bytes());
  } else if (*type == ScalarType::Float32) {
    take(tensor.float_data(), name, elements);
  } else if (*type == ScalarType::Float64) {
    take(tensor.double_data(), name, elements);
  } else if (*type == ScalarType::Int64) {
    take(tensor.int64_data(), name, elements);
  } else {
    take(tensor.int32_data(), name, elements);
  }
  for (std::size_t i = 0; is_float(*type) && i < elements.size(); ++i) {
    if (std::isnan(elements.get(i))) {
      refuse("element " + std::to_string(i) + " of tensor '" + name +
             "' is not a number (NaN); train or write it anew");
    }
  }
  if (*type == ScalarType::Int64)
    for (std::int64_t& element : elements.elements<std::int64_t>()) element = kept_integer(element);
  return std::make_shared<const NamedArray>(std::move(result));
}

TUNEWRIGHT_INLINE AttributeValue ModelReader::attribute(const ::onnx::AttributeProto& proto,
                                                        const std::string& node) const {
  switch (proto.type()) {
    case ::onnx::AttributeProto::INT: return std::int64_t{proto.i()};
    case ::onnx::AttributeProto::FLOAT: return static_cast<double>(proto.f());
    case ::onnx::AttributeProto::STRING: return std::string(proto.s());
    case ::onnx::AttributeProto::INTS: return std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end());
    case ::onnx::AttributeProto::FLOATS: return std::vector<double>(proto.floats().begin(), proto.floats().end());
    case ::onnx::AttributeProto::TENSOR: return array(proto.t(), node + "." + proto.name());
    default: return UnsupportedAttribute{::onnx::AttributeProto::AttributeType_Name(proto.type())};
  }
}

TUNEWRIGHT_INLINE Node ModelReader::node(const ::onnx::NodeProto& proto, int number) const {
  Node node;
  node.op = proto.op_type();
  node.name = proto.name().empty() ? "#" + std::to_string(number) : proto.name();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (const auto& attribute : proto.attribute())
    node.attributes[attribute.name()] = this->attribute(attribute, node.name);
  return node;
}

TUNEWRIGHT_INLINE ModelInput ModelReader::input(const ::onnx::ValueInfoProto& proto) const {
  ModelInput input;
  input.name = proto.name();
  const auto& type = proto.type().tensor_type();
  const std::optional<ScalarType> element = scalar_type(type.elem_type());
  if (!proto.type().has_tensor_type() || !element) {
    refuse("input '" + proto.name() +
           "' is no tensor of numbers; use float, double, float16, bfloat16, int8, uint8, "
           "int32, int64 or bool");
  }
  input.type = *element;
  input.has_shape = type.has_shape();
  for (const auto& dimension : type.shape().dim()) {
    // Some exporters write 0 or -1 where an extent is open.
    const bool is_known = dimension.has_dim_value() && dimension.dim_value() > 0;
    input.shape.push_back(
        {is_known ? std::optional(std::int64_t{dimension.dim_value()}) : std::nullopt, dimension.dim_param()});
  }
  return input;
}

TUNEWRIGHT_INLINE Model ModelReader::read() {
  const std::uintmax_t bytes = checked_size(path_);
  std::ifstream stream(path_, std::ios::binary);
  if (!stream) refuse("it cannot be opened");
  // Messages are larger than their encoding, but only a file made to exhaust memory is this much larger.
  message_budget() = static_cast<std::size_t>(4 * bytes) + (std::size_t{64} << 20U);
  google::protobuf::ArenaOptions options;
  options.block_alloc = message_block;
  options.block_dealloc = release_message_block;
  google::protobuf::Arena arena(options);
#if GOOGLE_PROTOBUF_VERSION < 5026000
  auto* const proto = google::protobuf::Arena::CreateMessage<::onnx::ModelProto>(&arena);
#else
  auto* const proto = google::protobuf::Arena::Create<::onnx::ModelProto>(&arena);
#endif
  try {
    google::protobuf::io::IstreamInputStream input(&stream);
    google::protobuf::io::CodedInputStream coded(&input);
    if (!proto->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
      refuse("it is no ONNX file, is truncated, or is nested too deeply; write it anew with onnx.save or torch.onnx");
    }
  } catch (const std::bad_alloc&) {
    refuse("reading it takes many times its size of memory, as no network does; write it anew with onnx.save");
  }
  if (!proto->has_graph()) refuse("it holds no graph; is it an ONNX file?");
  const ::onnx::GraphProto& graph = proto->graph();
  Model model;
  model.name = graph.name().empty() ? path_.stem().string() : graph.name();
  for (const auto& set : proto->opset_import())
    if (set.domain().empty() || set.domain() == "ai.onnx") model.opset = set.version();
  if (model.opset < 7) {
    refuse("it is of opset " + std::to_string(model.opset) +
           "; versions from 7 on are read, so convert it with "
           "onnx.version_converter");
  }
  if (graph.sparse_initializer_size() > 0) refuse("it has sparse weights; make them dense");
  for (const auto& tensor : graph.initializer()) {
    if (model.constants.contains(tensor.name()))
      refuse("it has two weights called '" + tensor.name() + "'; check it with onnx.checker");
    model.constants[tensor.name()] = array(tensor, tensor.name());
  }
  for (int n = 0; n < graph.node_size(); ++n) model.nodes.push_back(node(graph.node(n), n));
  for (const auto& value : graph.input())
    if (!model.constants.contains(value.name())) model.inputs.push_back(input(value));
  for (const auto& value : graph.output()) model.outputs.push_back(value.name());
  return model;
}

}  // namespace tunewright::networks::onnx::detail

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE Model read_model(const std::filesystem::path& path, double most_bytes) {
  return detail::ModelReader(path, most_bytes).read();
}

}  // namespace tunewright::networks::onnx

#endif
