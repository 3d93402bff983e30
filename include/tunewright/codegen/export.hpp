// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

/// Kernels for programs that do not use this library: an object file, a C header, and a thread runtime in C.
namespace tunewright::codegen {

/// Files written by `export_kernel`.
struct ExportedKernel {
  std::string symbol;
  std::filesystem::path object;  ///< `<symbol>.o`
  std::filesystem::path header;  ///< `<symbol>.h`
};

/// Files written by `export_runtime`.
struct ExportedRuntime {
  std::filesystem::path header;  ///< `tunewright_runtime.h`
  std::filesystem::path source;  ///< `tunewright_runtime.c`
};

namespace detail {

/// Names of buffers in generated headers, after the symbol of their kernel: C identifiers, numbered from 2 on if
/// several are equal or the header uses the name otherwise.
[[nodiscard]] std::vector<std::string> c_buffer_names(std::span<const KernelBuffer> buffers);

/// 16-bit floating-point types are passed as bits, because not every C compiler has them.
[[nodiscard]] constexpr std::string_view c_type(program::ScalarType type) noexcept {
  constexpr std::string_view names[program::scalar_type_count] = {"uint8_t",  "int32_t",  "int64_t", "float",  "double",
                                                                  "uint16_t", "uint16_t", "int8_t",  "uint8_t"};
  return names[static_cast<std::size_t>(type)];
}

/// A place in a text, whose name stands between two @, and what to put there.
using Fill = std::pair<std::string_view, std::string>;
/// The text with all its places filled. What is put there is not searched for others.
[[nodiscard]] std::string filled(std::string_view text, std::span<const Fill> fills);

/// Makes text safe inside a comment.
[[nodiscard]] std::string c_comment(std::string_view text);

[[nodiscard]] std::string c_extents(const std::vector<std::int64_t>& shape);

/// A C function that does the same as `pack` for this layout; `buffer` is the name from `c_buffer_names`.
[[nodiscard]] std::string c_packing(const std::string& symbol, const std::string& buffer, const loops::Buffer& layout);

/// A C function that requests the tile registers from Linux, as `host::permit_tile_registers` does.
[[nodiscard]] std::string c_permission();

/// Preprocessor lines that stop compilation for another family of processors than that of the machine code in `file`;
/// empty for an unknown family.
[[nodiscard]] std::string c_family_check(CpuFamily family, const std::string& file);

/// What a header says of buffers, each in their order.
struct BufferTexts {
  std::string lines;    ///< of a comment
  std::string bytes;    ///< separated by commas
  std::string packing;  ///< functions
};

/// How a header calls the types of elements: as C passes them, or by their names.
enum class ElementTypes : std::uint8_t { OfC, ByName };

[[nodiscard]] BufferTexts c_buffer_texts(std::span<const KernelBuffer> buffers, const std::string& symbol,
                                         ElementTypes types);

[[nodiscard]] std::string c_header(const Kernel& kernel, const std::string& symbol, std::string_view remark);

/// Creates the folder if necessary. Throws `std::runtime_error` if it cannot be made or the file not be written.
void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace detail

/// Writes `<symbol>.o` and `<symbol>.h` into `directory`, which is created if necessary; `symbol` is `name` as a C
/// identifier. The header declares the kernel, documents its buffers, and defines a runtime that executes parallel
/// loops serially and a packing function for each packed constant; it refuses to compile for another family of
/// processors than the kernel's. `remark` is added to the header's first line. Throws `std::invalid_argument` for a
/// kernel without an object file, and if another export in `directory` declares a name that this one does, or is of a
/// network or a program for GPUs under this name, `std::runtime_error` for a path that cannot be written.
ExportedKernel export_kernel(const Kernel& kernel, std::string_view name, const std::filesystem::path& directory,
                             std::string_view remark = {});

/// Writes `tunewright_runtime.h` and `tunewright_runtime.c` into `directory`, which is created if necessary. They run
/// the parallel loops of exported kernels on their own threads, on threads of the calling program, or with OpenMP, and
/// are the same for all kernels and targets. Throws `std::runtime_error` for a path that cannot be written.
ExportedRuntime export_runtime(const std::filesystem::path& directory);

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include <algorithm>

#include "tunewright/codegen/elf_object.hpp"
#include "tunewright/codegen/exported_names.hpp"
#include "tunewright/codegen/runtime_text.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/write_file.hpp"
#include "tunewright/program/expr.hpp"

namespace tunewright::codegen::detail {

TUNEWRIGHT_INLINE std::vector<std::string> c_buffer_names(std::span<const KernelBuffer> buffers) {
  std::vector<std::string> names;
  for (const KernelBuffer& buffer : buffers) names.push_back(buffer.layout.name);
  return c_names(names, {"buffer_count", "buffer_bytes", "threads", "load", "launch", "run", "unload", "error"},
                 "pack_", "");
}

TUNEWRIGHT_INLINE std::string filled(std::string_view text, std::span<const Fill> fills) {
  std::string result;
  for (;;) {
    const std::size_t begin = text.find('@');
    if (begin == std::string_view::npos) return result.append(text);
    const std::size_t end = text.find('@', begin + 1);
    const std::string_view place = text.substr(begin + 1, end - begin - 1);
    const auto fill = std::find_if(fills.begin(), fills.end(), [&](const Fill& f) { return f.first == place; });
    result.append(text.substr(0, begin)).append(fill->second);
    text.remove_prefix(end + 1);
  }
}

TUNEWRIGHT_INLINE std::string c_comment(std::string_view text) {
  std::string result(text);
  // Compilers warn of what looks like the start of another comment.
  for (const char* const mark : {"*/", "/*"})
    for (std::size_t at = 0; (at = result.find(mark, at)) != std::string::npos;) result.insert(at + 1, " ");
  for (char& c : result) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return result;
}

TUNEWRIGHT_INLINE std::string c_extents(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += "[" + std::to_string(extent) + "]";
  return text;
}

TUNEWRIGHT_INLINE std::string c_packing(const std::string& symbol, const std::string& buffer,
                                        const loops::Buffer& layout) {
  const std::vector<std::int64_t>& tensor_shape = layout.shape;  // arguments are whole tensors
  const std::string type(c_type(layout.type));
  std::string text = "/* Copies row-major " + c_comment(layout.name) + c_extents(tensor_shape) +
                     " into the order the kernel reads. */\n";
  text +=
      "static inline void " + symbol + "_pack_" + buffer + "(const " + type + "* row_major, " + type + "* packed) {\n";
  std::string indent = "  ";
  for (std::size_t p = 0; p < layout.packing.size(); ++p) {
    const std::string i = "i" + std::to_string(p);
    text += indent + "for (int64_t " + i + " = 0; " + i + " < " + std::to_string(layout.packing[p].extent) + "; ++" +
            i + ") {\n";
    indent += "  ";
  }
  std::string inside;
  std::string offset;
  for (std::size_t d = 0; d < tensor_shape.size(); ++d) {
    const std::string x = "x" + std::to_string(d);
    text += indent + "const int64_t " + x + " = 0";
    for (std::size_t p = 0; p < layout.packing.size(); ++p) {
      if (layout.packing[p].dimension != d) continue;
      text += " + i" + std::to_string(p) + " * " + std::to_string(layout.packing[p].divisor);
    }
    text += ";\n";
    inside += (d == 0 ? "" : " && ") + x + " < " + std::to_string(tensor_shape[d]);
    offset = d == 0 ? x : "(" + offset + ") * " + std::to_string(tensor_shape[d]) + " + " + x;
  }
  text += indent +
          "*packed++ = " + (inside.empty() ? "row_major[0]" : "(" + inside + ") ? row_major[" + offset + "] : 0") +
          ";\n";
  for (std::size_t p = 0; p < layout.packing.size(); ++p) {
    indent.resize(indent.size() - 2);
    text += indent + "}\n";
  }
  return text + "}\n";
}

TUNEWRIGHT_INLINE std::string c_permission() {
  return "#ifndef TUNEWRIGHT_TILE_REGISTERS\n#define TUNEWRIGHT_TILE_REGISTERS\n"
         "/* Asks Linux for the tile registers, for this process. 0 where they may be\n"
         " * used; else the processor or the system has none. */\n"
         "static inline long tunewright_permit_tile_registers(void) {\n"
         "  long result = 158; /* arch_prctl */\n"
         "  __asm__ volatile(\"syscall\" : \"+a\"(result) : \"D\"(0x1023L), \"S\"(18L)\n"
         "                   : \"rcx\", \"r11\", \"memory\");\n"
         "  return result;\n"
         "}\n#endif\n\n";
}

TUNEWRIGHT_INLINE std::string c_family_check(CpuFamily family, const std::string& file) {
  if (family == CpuFamily::Other) return {};
  return std::string("#if !defined(") + (family == CpuFamily::Aarch64 ? "__aarch64__" : "__x86_64__") + ")\n#error \"" +
         file + " is machine code for " + std::string(name(family)) +
         ": compile for that processor, or export for this one\"\n#endif\n\n";
}

TUNEWRIGHT_INLINE BufferTexts c_buffer_texts(std::span<const KernelBuffer> buffers, const std::string& symbol,
                                             ElementTypes types) {
  static constexpr std::string_view roles[] = {"input", "constant", "output", "workspace"};
  const std::vector<std::string> names = c_buffer_names(buffers);
  BufferTexts texts;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const loops::Buffer& layout = buffers[b].layout;
    const bool argument = layout.role != loops::BufferRole::Temporary;
    const bool of_c = types == ElementTypes::OfC;
    texts.lines += " *   " + std::to_string(b) + "  " + std::string(roles[static_cast<std::size_t>(layout.role)]) +
                   " " + std::string(of_c ? c_type(layout.type) : program::name(layout.type)) + " " +
                   c_comment(layout.name) + c_extents(argument ? layout.shape : layout.physical_shape());
    if (of_c && program::is_narrow_float(layout.type))
      texts.lines += ", bits of " + std::string(program::name(layout.type));
    if (argument && !layout.packing.empty()) {
      texts.lines += ", packed: " + symbol + "_pack_" + names[b] + "() fills it";
      texts.packing += "\n" + c_packing(symbol, names[b], layout);
    }
    texts.lines += "\n";
    texts.bytes += (b == 0 ? "" : ", ") + std::to_string(buffers[b].bytes());
  }
  return texts;
}

TUNEWRIGHT_INLINE std::string c_header(const Kernel& kernel, const std::string& symbol, std::string_view remark) {
  const std::string guard = "TUNEWRIGHT_KERNEL_" + symbol + "_H";
  std::string text = "/* Generated by tunewright";
  if (!remark.empty()) text += ": " + c_comment(remark);
  text += ".\n *\n * Buffers, in this order, each aligned to 64 bytes; they must not overlap:\n";
  const BufferTexts buffers = c_buffer_texts(kernel.buffers, symbol, ElementTypes::OfC);
  const std::vector<std::string> names = c_buffer_names(kernel.buffers);
  std::string enumerators;
  for (std::size_t b = 0; b < names.size(); ++b)
    enumerators += (b == 0 ? "" : ", ") + symbol + "_" + names[b] + " = " + std::to_string(b);
  text += buffers.lines;
  text +=
      " *\n * Tensors are row-major. Link with -lm. The kernel keeps nothing between calls: threads may call it at "
      "the\n"
      " * same time, each with outputs and workspace of its own.\n";
  if (const CpuFamily family = family_of_object(*kernel.object);
      family != CpuFamily::Other && !kernel.processor.empty()) {
    text += " *\n * The code is for " + std::string(name(family)) + ", for a processor that has all instructions of '" +
            kernel.processor + "',\n * as LLVM calls it.\n";
  }
  text += " *\n * Its loops were made for " + std::to_string(kernel.threads) +
          (kernel.threads == 1 ? " thread.\n" : " threads: see tunewright_runtime.h for what runs them.\n");
  if (kernel.uses_tile_registers) {
    text +=
        " *\n * The kernel uses the tile registers of AMX: call tunewright_permit_tile_registers()\n"
        " * once before it runs.\n";
  }
  text += " */\n#ifndef " + guard + "\n#define " + guard + "\n\n#include <stddef.h>\n#include <stdint.h>\n\n";
  text += c_family_check(family_of_object(*kernel.object), symbol + ".o");
  text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  text += runtime_declaration_text;
  if (kernel.uses_tile_registers) text += c_permission();
  text += "enum { " + enumerators + ", " + symbol + "_buffer_count = " + std::to_string(kernel.buffers.size()) + ", " +
          symbol + "_threads = " + std::to_string(kernel.threads) + " };\n";
  text += "static const size_t " + symbol + "_buffer_bytes[] = {" + buffers.bytes + "};\n\n";
  text += "void " + symbol + "(void* const* buffers, const struct tunewright_runtime* runtime);\n" + buffers.packing;
  return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

TUNEWRIGHT_INLINE void write_file(const std::filesystem::path& path, std::string_view content) {
  make_folder(path.parent_path());
  tunewright::write_file(path, "name another folder, or make room", [&](std::ostream& out) { out << content; });
}

}  // namespace tunewright::codegen::detail

namespace tunewright::codegen {

TUNEWRIGHT_INLINE ExportedKernel export_kernel(const Kernel& kernel, std::string_view name,
                                               const std::filesystem::path& directory, std::string_view remark) {
  if (!kernel.object || kernel.object->empty()) {
    throw std::invalid_argument("kernel '" + kernel.symbol + "' has no object file; export a compiled one");
  }
  const std::string symbol = detail::c_symbol(name);
  const std::vector<char> object = with_symbol_renamed(*kernel.object, kernel.symbol, symbol);
  const std::string header = detail::c_header(kernel, symbol, remark);
  detail::check_names(directory, symbol, header);
  ExportedKernel files{symbol, directory / (symbol + ".o"), directory / (symbol + ".h")};
  detail::write_file(files.object, {object.data(), object.size()});
  detail::write_file(files.header, header);
  return files;
}

TUNEWRIGHT_INLINE ExportedRuntime export_runtime(const std::filesystem::path& directory) {
  std::string header(detail::runtime_header_text);
  constexpr std::string_view place = "@DECLARATION@";
  header.replace(header.find(place), place.size(), detail::runtime_declaration_text);
  ExportedRuntime files{directory / "tunewright_runtime.h", directory / "tunewright_runtime.c"};
  detail::write_file(files.header, header);
  detail::write_file(files.source, detail::runtime_source_text);
  return files;
}

}  // namespace tunewright::codegen

#endif
