// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tunewright/codegen/export.hpp"
#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/reference/evaluate.hpp"

/// Export of whole networks for programs that do not use this library.
namespace tunewright::networks {

/// Files written by `export_network`.
struct ExportedNetwork {
  std::string symbol;
  std::filesystem::path header;      ///< `<symbol>.h`
  std::filesystem::path source;      ///< `<symbol>.c`, C99
  std::filesystem::path library;     ///< `lib<symbol>.a`: the kernels
  std::filesystem::path weights;     ///< `<symbol>.weights`, see `weights_file.hpp`
  codegen::ExportedRuntime runtime;  ///< threads in C, see `codegen::export_runtime`
};

/// Writes a network with its kernels, one per task, into `directory`, which is created if missing; `symbol` is `name`
/// as a C identifier. The C code loads the weights, rejects foreign weight files, plans memory for inputs, outputs and
/// intermediate tensors as `CompiledNetwork` does, performs lookups, and runs the kernels in order. `values` has the
/// constants, by tensor. Kernels may be for another processor family than this machine's: the header then fails to
/// compile on this machine. `remark` goes into the header's first line.
///
/// Errors: `std::invalid_argument` for everything that `plan_execution` rejects, a missing or mismatched constant, a
///         kernel without an object file, a name that another export in `directory` declares too, and that of a kernel
///         or a program for GPUs there; `std::runtime_error` for an unwritable path.
/// Cost: a pass over the constants.
/// Determinism: the same arguments give the same bytes.
ExportedNetwork export_network(const Network& network, const Partition& partition,
                               std::span<const codegen::Kernel> kernels, const reference::Tensors& values,
                               std::string_view name, const std::filesystem::path& directory,
                               std::string_view remark = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/codegen/elf_object.hpp"
#include "tunewright/codegen/exported_names.hpp"
#include "tunewright/codegen/runtime_text.hpp"
#include "tunewright/codegen/static_library.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/networks/execution_plan.hpp"
#include "tunewright/networks/export_text.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/networks/weights_file.hpp"
#include "tunewright/program/analysis.hpp"

namespace tunewright::networks::detail {

/// The C code of one network.
class NetworkText {
 public:
  NetworkText(const Network& network, const Partition& partition, std::span<const codegen::Kernel> kernels,
              std::string_view name, std::string_view remark)
      : network_(network),
        partition_(partition),
        kernels_(kernels),
        symbol_(codegen::detail::c_symbol(name)),
        remark_(remark),
        plan_(plan_execution(network, partition, kernels)) {
    for (const Lookup& lookup : network.lookups) tables_.push_back(row_major_constant(lookup.table));
    weights_ = weights_layout(plan_.constants);
    identity_ = weights_identity(partition.graph_hash, plan_.constants);
  }

  [[nodiscard]] std::string header() const;
  [[nodiscard]] std::string source() const;
  [[nodiscard]] const std::string& symbol() const { return symbol_; }
  [[nodiscard]] std::string kernel_symbol(std::size_t task) const { return symbol_ + "_kernel" + std::to_string(task); }
  [[nodiscard]] const std::vector<PackedConstant>& constants() const { return plan_.constants; }
  [[nodiscard]] std::uint64_t identity() const { return identity_; }

 private:
  [[nodiscard]] std::size_t row_major_constant(TensorId tensor);
  [[nodiscard]] const program::Operator& op(TensorId id) const { return network_.graph->op(id); }
  [[nodiscard]] std::size_t offset(TensorId tensor) const {
    return plan_.memory.offsets[plan_.piece_of.at(partition_.storage[tensor])];
  }
  /// Calls `f(function, tensor, type)` for the functions that access inputs, or outputs.
  template <class F>
  void for_each_accessor(bool is_input, const F& f) const;
  [[nodiscard]] std::string declarations(bool is_input) const;
  [[nodiscard]] std::string tensor_functions() const;
  [[nodiscard]] std::string lookups() const;

  const Network& network_;
  const Partition& partition_;
  std::span<const codegen::Kernel> kernels_;
  std::string symbol_;
  std::string_view remark_;
  ExecutionPlan plan_;
  std::vector<std::size_t> tables_;  // of lookups, among the constants
  WeightsLayout weights_;
  std::uint64_t identity_ = 0;
};

TUNEWRIGHT_INLINE std::size_t NetworkText::row_major_constant(TensorId tensor) {
  for (std::size_t c = 0; c < plan_.constants.size(); ++c)
    if (plan_.constants[c].tensor == tensor && plan_.constants[c].layout.packing.empty()) return c;
  loops::Buffer layout;
  layout.name = op(tensor).name;
  layout.type = op(tensor).type;
  layout.role = loops::BufferRole::Constant;
  layout.shape = op(tensor).shape();
  plan_.constants.push_back({tensor, layout});
  return plan_.constants.size() - 1;
}

template <class F>
void NetworkText::for_each_accessor(bool is_input, const F& f) const {
  const std::vector<TensorId> tensors = is_input ? inputs(network_) : network_.outputs;
  std::vector<std::string> names;
  if (!is_input) names = network_.output_names;
  for (std::size_t i = names.size(); i < tensors.size(); ++i) names.push_back(op(tensors[i]).name);
  names = codegen::detail::c_names(names, {}, "", "_elements");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string type(codegen::detail::c_type(op(tensors[i]).type));
    f(symbol_ + (is_input ? "_input_" : "_output_") + names[i], tensors[i], is_input ? type : "const " + type);
  }
}

TUNEWRIGHT_INLINE std::string NetworkText::declarations(bool is_input) const {
  std::string text;
  for_each_accessor(is_input, [&](const std::string& function, TensorId id, const std::string& type) {
    const std::string elements = function + "_elements = " + std::to_string(op(id).elements());
    // An enumerator is a constant expression, and an int can be compared with it; C99 has no larger ones than ints.
    const bool is_int = op(id).elements() <= std::numeric_limits<std::int32_t>::max();
    text += is_int ? "enum { " + elements + " };\n" : "static const size_t " + elements + ";\n";
    text += type + "* " + function + "(" + (is_input ? "" : "const ") + "struct " + symbol_ + "* network);\n";
  });
  return text;
}

TUNEWRIGHT_INLINE std::string NetworkText::header() const {
  std::string tensors = " * Tensors, row-major:\n";
  for (const bool is_input : {true, false}) {
    for_each_accessor(is_input, [&](const std::string& function, TensorId id, const std::string&) {
      tensors += " *   " + function + "()  " + std::string(codegen::detail::c_type(op(id).type)) + " " +
                 codegen::detail::c_extents(op(id).shape());
      if (program::is_narrow_float(op(id).type)) tensors += ", bits of " + std::string(program::name(op(id).type));
      for (const Lookup& lookup : network_.lookups) {
        if (is_input && lookup.ids == id)
          tensors += ", numbers from 0 to " + std::to_string(op(lookup.table).axes[0].extent - 1);
      }
      tensors += "\n";
    });
  }
  const CpuFamily family = codegen::family_of_object(*kernels_[0].object);
  if (family != CpuFamily::Other && !kernels_[0].processor.empty()) {
    tensors += " *\n * The kernels are for " + std::string(name(family)) +
               ", for a processor that has all instructions of '" + kernels_[0].processor +
               "',\n * as LLVM calls it.\n";
  }
  std::string title = "network '" + network_.name + "', " + std::to_string(kernels_.size()) + " kernels, " +
                      std::to_string(partition_.calls.size()) + " calls";
  if (!remark_.empty()) title += ": " + std::string(remark_);
  // In its own case, which may be all that the names of two networks differ by.
  const std::string guard = "TUNEWRIGHT_NETWORK_" + symbol_ + "_H";
  const std::vector<codegen::detail::Fill> fills{
      {"NAME", symbol_},
      {"TITLE", codegen::detail::c_comment(title)},
      {"TENSORS", tensors},
      {"GUARD", guard},
      {"FAMILY_CHECK", codegen::detail::c_family_check(family, "lib" + symbol_ + ".a")},
      {"RUNTIME", std::string(codegen::detail::runtime_declaration_text)},
      {"THREADS", std::to_string(kernels_[0].threads)},
      {"MEMORY_KB", std::to_string(plan_.memory.bytes / 1024)},
      {"INPUTS", declarations(true)},
      {"OUTPUTS", declarations(false)}};
  return codegen::detail::filled(network_header_text, fills);
}

TUNEWRIGHT_INLINE std::string NetworkText::tensor_functions() const {
  std::string text;
  for (const bool is_input : {true, false}) {
    for_each_accessor(is_input, [&](const std::string& function, TensorId id, const std::string& type) {
      text += type + "* " + function + "(" + (is_input ? "" : "const ") + "struct " + symbol_ +
              "* network) {\n  return (" + type + "*)(network->data + " + std::to_string(offset(id)) + ");\n}\n\n";
    });
  }
  return text;
}

TUNEWRIGHT_INLINE std::string NetworkText::lookups() const {
  std::string text;
  for (std::size_t l = 0; l < network_.lookups.size(); ++l) {
    const Lookup& lookup = network_.lookups[l];
    const std::int64_t entries = op(lookup.table).axes[0].extent;
    text += "  if (!look_up(network->weights->data + " + std::to_string(weights_.offsets[tables_[l]]) + ", " +
            std::to_string(entries) + ", " +
            std::to_string(plan_.constants[tables_[l]].bytes() / static_cast<std::size_t>(entries)) +
            ", network->data + " + std::to_string(offset(lookup.ids)) + ", " +
            std::to_string(op(lookup.ids).elements()) + ", network->data + " + std::to_string(offset(lookup.rows)) +
            "))\n    return " + symbol_ + "_no_such_row;\n";
  }
  return text;
}

TUNEWRIGHT_INLINE std::string NetworkText::source() const {
  std::string declared;
  for (std::size_t k = 0; k < kernels_.size(); ++k) declared += "tunewright_kernel " + kernel_symbol(k) + ";\n";
  std::string calls;
  std::string places;
  std::size_t buffers = 0;
  for (std::size_t c = 0; c < partition_.calls.size(); ++c) {
    const TaskCall& call = partition_.calls[c];
    calls += "    {" + kernel_symbol(call.task) + ", " + std::to_string(plan_.buffers[c].size()) + "}, /* " +
             codegen::detail::c_comment(partition_.tasks[call.task].task.name) + " */\n";
    std::string line = "   ";
    for (const BufferPlace& place : plan_.buffers[c]) {
      const std::size_t at = place.constant ? weights_.offsets[place.number] : plan_.memory.offsets[place.number];
      line += " {" + std::to_string(at) + ", " + (place.constant ? "1" : "0") + "},";
    }
    places += line + "\n";
    buffers += plan_.buffers[c].size();
  }
  const bool tile_registers = std::any_of(kernels_.begin(), kernels_.end(),
                                          [](const codegen::Kernel& kernel) { return kernel.uses_tile_registers; });
  const std::vector<codegen::detail::Fill> fills{
      {"NAME", symbol_},
      {"KERNELS", declared},
      {"PERMISSION_FUNCTION", tile_registers ? codegen::detail::c_permission() : std::string()},
      {"VERSION", std::to_string(weights_file_version)},
      {"IDENTITY", "0x" + to_hex(identity_)},
      {"WEIGHT_BYTES", std::to_string(weights_.bytes)},
      {"MEMORY_BYTES", std::to_string(plan_.memory.bytes)},
      {"CALLS", calls},
      {"BUFFER_COUNT", std::to_string(buffers)},
      {"PLACES", places},
      {"SUM_START", "0x" + to_hex(weights_check_sum_start)},
      {"SUM_FACTOR", "0x" + to_hex(weights_check_sum_factor)},
      {"PERMISSION", tile_registers
                         ? "  if (tunewright_permit_tile_registers() != 0) return " + symbol_ + "_no_tile_registers;\n"
                         : std::string()},
      {"TENSOR_FUNCTIONS", tensor_functions()},
      {"LOOK_UP", std::string(network_.lookups.empty() ? "" : look_up_text)},
      {"LOOKUPS", lookups()}};
  return codegen::detail::filled(network_source_text, fills);
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE ExportedNetwork export_network(const Network& network, const Partition& partition,
                                                 std::span<const codegen::Kernel> kernels,
                                                 const reference::Tensors& values, std::string_view name,
                                                 const std::filesystem::path& directory, std::string_view remark) {
  for (const codegen::Kernel& kernel : kernels) {
    if (!kernel.object || kernel.object->empty())
      throw std::invalid_argument("kernel '" + kernel.symbol + "' of network '" + network.name +
                                  "' has no object file; give what networks::compile_kernels returns");
  }
  const detail::NetworkText text(network, partition, kernels, name, remark);
  for (const PackedConstant& constant : text.constants()) check_array(network, constant.tensor, values);
  std::vector<codegen::LibraryMember> members;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::string symbol = text.kernel_symbol(k);
    members.push_back({symbol, codegen::with_symbol_renamed(*kernels[k].object, kernels[k].symbol, symbol)});
  }
  const std::vector<char> library = codegen::static_library(members);
  const std::string& symbol = text.symbol();
  const std::string header = text.header(), source = text.source();
  codegen::detail::check_names(directory, symbol, header + source);
  ExportedNetwork files{symbol,
                        directory / (symbol + ".h"),
                        directory / (symbol + ".c"),
                        directory / ("lib" + symbol + ".a"),
                        directory / (symbol + ".weights"),
                        codegen::export_runtime(directory)};
  codegen::detail::write_file(files.header, header);
  codegen::detail::write_file(files.source, source);
  codegen::detail::write_file(files.library, {library.data(), library.size()});
  write_weights(files.weights, text.identity(), text.constants(), values);
  return files;
}

}  // namespace tunewright::networks

#endif
