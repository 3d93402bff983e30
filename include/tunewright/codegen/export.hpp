// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"

/// Kernels for programs that do not use this library: an object file and a C header.
namespace tunewright::codegen {

/// Files written by `export_kernel`.
struct ExportedKernel {
  std::string symbol;
  std::filesystem::path object;  ///< `<symbol>.o`
  std::filesystem::path header;  ///< `<symbol>.h`
};

namespace detail {

[[nodiscard]] std::string c_identifier(std::string_view name);

/// C has no floating-point types of 16 bits everywhere, so their bits travel.
[[nodiscard]] constexpr std::string_view c_type(program::ScalarType type) noexcept {
  constexpr std::string_view names[program::scalar_type_count] = {"uint8_t",  "int32_t",  "int64_t", "float",  "double",
                                                                  "uint16_t", "uint16_t", "int8_t",  "uint8_t"};
  return names[static_cast<std::size_t>(type)];
}

[[nodiscard]] std::string c_extents(const std::vector<std::int64_t>& shape);

/// A C function that does what `pack` does for this layout.
[[nodiscard]] std::string c_packing(const std::string& symbol, const loops::Buffer& layout);

/// A C function that asks Linux for the tile registers, as `host::permit_tile_registers` does.
[[nodiscard]] std::string c_permission();

[[nodiscard]] std::string c_header(const Kernel& kernel, const std::string& symbol, std::string_view remark);

/// The object file with its global symbol `from` called `to`: the string table, with the new name added,
/// moves to the end.
[[nodiscard]] std::vector<char> with_symbol_renamed(std::vector<char> object, const std::string& from,
                                                    const std::string& to);

void write_file(const std::filesystem::path& path, const char* data, std::size_t size);

}  // namespace detail

/// Writes `<symbol>.o` and `<symbol>.h` into `directory`, which is made if missing; `symbol` is `name` as a C
/// identifier. The header declares the kernel, documents its buffers, and defines a runtime that runs
/// parallel loops serially and a packing function for each packed constant. `remark` goes into the header's
/// first line. Throws `std::invalid_argument` for a kernel without an object file, `std::runtime_error` for
/// an unwritable path.
ExportedKernel export_kernel(const Kernel& kernel, std::string_view name, const std::filesystem::path& directory,
                             std::string_view remark = {});

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include "tunewright/program/expr.hpp"

namespace tunewright::codegen::detail {

TUNEWRIGHT_INLINE std::string c_identifier(std::string_view name) {
  std::string result;
  for (const char c : name) result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0) result.insert(0, "_");
  return result;
}

TUNEWRIGHT_INLINE std::string c_extents(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += "[" + std::to_string(extent) + "]";
  return text;
}

TUNEWRIGHT_INLINE std::string c_packing(const std::string& symbol, const loops::Buffer& layout) {
  const std::vector<std::int64_t>& tensor_shape = layout.shape;  // arguments hold the whole tensor
  const std::string type(c_type(layout.type));
  std::string text =
      "/* Copies row-major " + layout.name + c_extents(tensor_shape) + " into the order the kernel reads. */\n";
  text += "static inline void " + symbol + "_pack_" + c_identifier(layout.name) + "(const " + type + "* row_major, " +
          type + "* packed) {\n";
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

TUNEWRIGHT_INLINE std::string c_header(const Kernel& kernel, const std::string& symbol, std::string_view remark) {
  std::string guard = "TUNEWRIGHT_KERNEL_" + symbol + "_H";
  for (char& c : guard) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string text = "/* Generated by tunewright";
  if (!remark.empty()) text += ": " + std::string(remark);
  text += ".\n *\n * Buffers, in this order, each aligned to 64 bytes; they must not overlap:\n";
  std::string enumerators;
  std::string bytes;
  std::string packing;
  for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
    const loops::Buffer& layout = kernel.buffers[b].layout;
    const bool argument = layout.role != loops::BufferRole::Temporary;
    static constexpr std::string_view roles[] = {"input", "constant", "output", "workspace"};
    text += " *   " + std::to_string(b) + "  " + std::string(roles[static_cast<std::size_t>(layout.role)]) + " " +
            std::string(c_type(layout.type)) + " " + layout.name +
            c_extents(argument ? layout.shape : layout.physical_shape());
    if (program::is_narrow_float(layout.type)) text += ", bits of " + std::string(program::name(layout.type));
    if (!layout.packing.empty() && argument) {
      text += ", packed: " + symbol + "_pack_" + c_identifier(layout.name) + "() fills it";
      packing += "\n" + c_packing(symbol, layout);
    }
    text += "\n";
    enumerators += (b == 0 ? "" : ", ") + symbol + "_" + c_identifier(layout.name) + " = " + std::to_string(b);
    bytes += (b == 0 ? "" : ", ") + std::to_string(kernel.buffers[b].bytes());
  }
  text += " *\n * Tensors are row-major. Link with -lm.\n";
  if (kernel.uses_tile_registers) {
    text +=
        " *\n * The kernel uses the tile registers of AMX: call tunewright_permit_tile_registers()\n"
        " * once before it runs.\n";
  }
  text += " */\n#ifndef " + guard + "\n#define " + guard + "\n\n#include <stddef.h>\n#include <stdint.h>\n\n";
  text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  text +=
      "#ifndef TUNEWRIGHT_RUNTIME\n#define TUNEWRIGHT_RUNTIME\n"
      "/* What runs the parallel loops of kernels. */\n"
      "struct tunewright_runtime {\n"
      "  /* Calls body(context, begin, end) for a partition of [0, count) and returns when all parts are "
      "done. */\n"
      "  void (*parallel_for)(const struct tunewright_runtime* self, int64_t count,\n"
      "                       void (*body)(void* context, int64_t begin, int64_t end), void* context);\n"
      "  void* state;\n"
      "};\n"
      "static inline void tunewright_serial_for(const struct tunewright_runtime* self, int64_t count,\n"
      "                                         void (*body)(void* context, int64_t begin, int64_t end), "
      "void* context) {\n"
      "  (void)self;\n"
      "  body(context, 0, count);\n"
      "}\n"
      "/* Runs everything on the calling thread. */\n"
      "static const struct tunewright_runtime tunewright_serial_runtime = {tunewright_serial_for, NULL};\n"
      "#endif\n\n";
  if (kernel.uses_tile_registers) text += c_permission();
  text +=
      "enum { " + enumerators + ", " + symbol + "_buffer_count = " + std::to_string(kernel.buffers.size()) + " };\n";
  text += "static const size_t " + symbol + "_buffer_bytes[] = {" + bytes + "};\n\n";
  text += "void " + symbol + "(void* const* buffers, const struct tunewright_runtime* runtime);\n" + packing;
  return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

TUNEWRIGHT_INLINE std::vector<char> with_symbol_renamed(std::vector<char> object, const std::string& from,
                                                        const std::string& to) {
  const auto wrong = [&](const char* what) {
    return std::invalid_argument("the object file of kernel '" + from + "' " + what);
  };
  const auto read = [&](std::size_t at, auto& value) {
    if (at + sizeof value > object.size()) throw wrong("is truncated");
    std::memcpy(&value, object.data() + at, sizeof value);
  };
  const auto write = [&](std::size_t at, const auto& value) { std::memcpy(object.data() + at, &value, sizeof value); };
  Elf64_Ehdr file;
  read(0, file);
  if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64)
    throw wrong("is not 64-bit ELF");
  for (std::size_t s = 0; s < file.e_shnum; ++s) {
    Elf64_Shdr symbols;
    read(file.e_shoff + s * sizeof symbols, symbols);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const std::size_t names_at = file.e_shoff + symbols.sh_link * sizeof(Elf64_Shdr);
    Elf64_Shdr names;
    read(names_at, names);
    for (std::size_t at = symbols.sh_offset; at < symbols.sh_offset + symbols.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      read(at, symbol);
      if (names.sh_offset + names.sh_size > object.size() || symbol.st_name >= names.sh_size)
        throw wrong("is truncated");
      if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL || from != object.data() + names.sh_offset + symbol.st_name)
        continue;
      std::vector<char> table(object.data() + names.sh_offset, object.data() + names.sh_offset + names.sh_size);
      symbol.st_name = static_cast<Elf64_Word>(table.size());
      table.insert(table.end(), to.c_str(), to.c_str() + to.size() + 1);
      names.sh_offset = object.size();
      names.sh_size = table.size();
      write(at, symbol);
      write(names_at, names);
      object.insert(object.end(), table.begin(), table.end());
      return object;
    }
  }
  throw wrong("does not define it");
}

TUNEWRIGHT_INLINE void write_file(const std::filesystem::path& path, const char* data, std::size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(data, static_cast<std::streamsize>(size));
  file.close();
  if (!file)
    throw std::runtime_error("cannot write '" + path.string() + "'; check that the folder exists and has room");
}

}  // namespace tunewright::codegen::detail

namespace tunewright::codegen {

TUNEWRIGHT_INLINE ExportedKernel export_kernel(const Kernel& kernel, std::string_view name,
                                               const std::filesystem::path& directory, std::string_view remark) {
  if (!kernel.object || kernel.object->empty()) {
    throw std::invalid_argument("kernel '" + kernel.symbol + "' has no object file; export a compiled one");
  }
  const std::string symbol = detail::c_identifier(name);
  const std::vector<char> object = detail::with_symbol_renamed(*kernel.object, kernel.symbol, symbol);
  const std::string header = detail::c_header(kernel, symbol, remark);
  ExportedKernel files{symbol, directory / (symbol + ".o"), directory / (symbol + ".h")};
  std::error_code ignored;  // writing the files tells
  std::filesystem::create_directories(directory, ignored);
  detail::write_file(files.object, object.data(), object.size());
  detail::write_file(files.header, header.data(), header.size());
  return files;
}

}  // namespace tunewright::codegen

#endif
