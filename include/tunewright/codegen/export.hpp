// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <set>
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

[[nodiscard]] std::string c_identifier(std::string_view name);

/// The same for functions, types and files of their own: followed by _ if C or C++ gives the name, or one that begins
/// with it, another meaning, as they do to `double`, if it is that of a header, or if names of the runtime begin so.
[[nodiscard]] std::string c_symbol(std::string_view name);

/// The names as C identifiers, numbered from 2 on if several are equal or one is in `taken`; this also holds for names
/// between `prefix` and `suffix`.
[[nodiscard]] std::vector<std::string> c_names(std::span<const std::string> names, std::set<std::string> taken,
                                               std::string_view prefix, std::string_view suffix);

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

/// What a generated header exports as `symbol`, such as "a kernel", which its guard tells; empty for other texts.
[[nodiscard]] std::string_view kind_of_export(std::string_view text, const std::string& symbol);

/// What a text of C declares. In C a function may have the name of a tag.
struct DeclaredNames {
  std::set<std::string> names;  ///< of functions, enumerators and variables
  std::set<std::string> tags;   ///< of structs and enums, which have one kind of name
};

/// What a generated text of C declares for `symbol`: that name and those that begin with it and _.
[[nodiscard]] DeclaredNames declared_names(std::string_view text, std::string_view symbol);

/// Throws `std::invalid_argument` if `text`, the header and any C code of what is exported as `symbol`, and that of
/// another export in `directory` declare one name or one tag: no program could have both. So do a kernel `dense` with a
/// buffer `relu` and a kernel `dense_relu`, a network `net`, whose kernels are `net_kernel0` and so on, and a kernel
/// `net_kernel0`, or networks `net` and `net_weights`. The message names both. Throws it as well if `<symbol>.h` is
/// there and of another kind of export, whose files would be left without their header; one of the same kind may be
/// written anew.
void check_names(const std::filesystem::path& directory, const std::string& symbol, std::string_view text);

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
#include "tunewright/codegen/keywords.hpp"
#include "tunewright/codegen/runtime_text.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/read_file.hpp"
#include "tunewright/core/word_list.hpp"
#include "tunewright/core/write_file.hpp"
#include "tunewright/program/expr.hpp"

namespace tunewright::codegen::detail {

TUNEWRIGHT_INLINE std::string c_identifier(std::string_view name) {
  std::string result;
  for (const char c : name) result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0) result.insert(0, "_");
  return result;
}

TUNEWRIGHT_INLINE std::string c_symbol(std::string_view name) {
  // A kernel with the name of a function of the C library would be called in its place by the whole program.
  static constexpr std::string_view taken =
      " main "
      // macros of the headers that generated ones and their C code include
      "BUFSIZ EOF FILE NULL offsetof unreachable "
      // headers of C, of Linux and of CUDA, for which files of that name would be taken
      "complex ctype cuda dlfcn fenv inttypes iso646 limits locale math nvrtc stdalign stdarg stdatomic stdbool stddef "
      "stdint stdio stdlib stdnoreturn string strings tgmath threads uchar unistd wchar wctype "
      // before _t, in the name or as a buffer, those of types; before _load and _error those of functions
      "aio argp atomic int16 int32 int64 int8 intmax intptr max_align ptrdiff size uint16 uint32 uint64 uint8 uintmax "
      "uintptr "
      // functions of the C library and of POSIX
      "a64l abort abs accept access acct alarm alloca asctime asprintf assert atexit atof atoi atol atoll basename "
      "bcmp bcopy bind brk bsearch bzero calloc chdir chmod chown chroot clearenv clearerr clock clone close confstr "
      "connect creat crypt ctime daemon daylight difftime dirname div dprintf drand48 dup dup2 dup3 ecvt encrypt "
      "environ erand48 err errno error errx execl execv execve execvp exit fallocate fchmod fclose fcntl fcvt "
      "fdatasync fdopen feof ferror fflush ffs fgetc fgets fileno flock fopen fork fprintf fputc fputs fread free "
      "freopen fscanf fseek fsync ftell ftruncate ftw fwrite gcvt getc getchar getdelim getenv getgid getline getopt "
      "getpid getppid gets getsid gettid gettimeofday getuid getw glob gmtime group_member hcreate hdestroy hsearch "
      "iconv index initstate insque ioctl isalnum isalpha isascii isatty isblank iscntrl isdigit isgraph isinf islower "
      "isnan isprint ispunct isspace isupper iswalpha isxdigit jrand48 kill killpg l64a labs lchown ldiv lfind link "
      "listen llabs lldiv localtime lockf login logout longjmp lrand48 lsearch lseek madvise malloc mblen mbstowcs "
      "mbtowc memccpy memchr memcmp memcpy memfrob memmem memmove mempcpy memrchr memset mkdir mkfifo mknod mkstemp "
      "mktemp mktime mlock mmap mount mprotect mrand48 mremap msync munlock munmap nanosleep nftw nice nrand48 open "
      "openat optarg opterr optind optopt pathconf pause pclose perror personality pipe poll popen ppoll prctl pread "
      "preadv printf profil pselect psignal ptrace putc putchar putenv puts putw pwrite pwritev qsort quick_exit raise "
      "rand random rawmemchr read readahead readlink readv realloc reallocarray realpath reboot recv recvfrom regcomp "
      "regexec remove remque rename revoke rewind rindex rmdir sbrk scandir scanf seed48 select send sendfile sendto "
      "setbuf setenv setgid setjmp setkey setns setsid setstate setuid setvbuf shutdown sigaction signal signgam sleep "
      "snprintf socket socketpair splice sprintf srand srand48 srandom sscanf stat statfs statx stderr stdin stdout "
      "stpcpy stpncpy strcasecmp strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup strerror strfry strftime "
      "strlcat strlcpy strlen strncat strncmp strncpy strndup strnlen strpbrk strptime strrchr strsep strsignal strspn "
      "strstr strtod strtof strtok strtol strtold strtoll strtoul strverscmp strxfrm swab swapoff swapon symlink sync "
      "syncfs syscall sysconf sysinfo syslog system tdelete tee tempnam tfind time timegm times timezone tmpfile "
      "tmpnam toascii tolower toupper truncate tsearch ttyname twalk tzname tzset ualarm ulimit umask umount uname "
      "ungetc ungetwc unlink unsetenv unshare usleep utime utimes valloc vasprintf vdprintf verr vfork vhangup "
      "vmsplice vprintf vwarn wait wait3 wait4 waitid waitpid warn warnx wcslen wctomb write writev ";
  // those of <math.h> and <complex.h>, of C23 too, which also end in f and l
  static constexpr std::string_view mathematics =
      " acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi cabs cacos cacosh canonicalize carg casin "
      "casinh catan catanh cbrt ccos ccosh ceil cexp cimag clog clog10 compoundn conj copysign cos cosh cospi cpow "
      "cproj creal csin csinh csqrt ctan ctanh drem erf erfc exp exp10 exp10m1 exp2 exp2m1 expm1 fabs fadd fdim fdiv "
      "ffma finite floor fma fmax fmaximum fmaximum_mag fmaximum_num fmaxmag fmin fminimum fminimum_mag fminimum_num "
      "fminmag fmod fmul frexp fromfp fsqrt fsub gamma hypot ilogb j0 j1 jn ldexp lgamma llogb llrint llround log "
      "log10 log10p1 log1p log2 log2p1 logb logp1 lrint lround modf nan nearbyint nextafter nextdown nexttoward nextup "
      "pow pow10 pown powr remainder remquo rint rootn round roundeven rsqrt scalb scalbln scalbn signbit significand "
      "sin sincos sinh sinpi sqrt tan tanh tanpi tgamma totalorder trunc ufromfp y0 y1 yn ";
  std::string result = c_identifier(name);
  const std::string_view all = result;
  const bool has_suffix = all.size() > 1 && (all.back() == 'f' || all.back() == 'l');
  const bool is_type = all.ends_with("_t") && contains_word(taken, all.substr(0, all.size() - 2));
  // Alone it comes before the name of a buffer, and in capitals it begins macros.
  const std::string_view first = all.substr(0, all.find('_'));
  const bool is_of_runtime = first == "tunewright" || first == "TUNEWRIGHT";
  if (is_keyword(all) || is_type || is_of_runtime || contains_word(taken, all) || contains_word(mathematics, all) ||
      (has_suffix && contains_word(mathematics, all.substr(0, all.size() - 1))))
    result += '_';
  return result;
}

TUNEWRIGHT_INLINE std::vector<std::string> c_names(std::span<const std::string> names, std::set<std::string> taken,
                                                   std::string_view prefix, std::string_view suffix) {
  const auto derived = [&](const std::string& name) { return std::string(prefix) + name + std::string(suffix); };
  std::vector<std::string> chosen;
  for (const std::string& plain_name : names) {
    const std::string plain = c_identifier(plain_name);
    std::string name = plain;
    for (int number = 2; taken.contains(name) || taken.contains(derived(name)); ++number)
      name = plain + "_" + std::to_string(number);
    taken.insert({name, derived(name)});
    chosen.push_back(std::move(name));
  }
  return chosen;
}

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

TUNEWRIGHT_INLINE DeclaredNames declared_names(std::string_view text, std::string_view symbol) {
  std::string code(text);
  for (std::size_t at = 0; (at = code.find("/*", at)) != std::string::npos;)
    code.erase(at, code.find("*/", at) + 2 - at);  // all that we generate end
  constexpr std::string_view in_names = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  DeclaredNames declared;
  std::size_t end = 0;
  for (std::size_t at = 0; (at = code.find(symbol, at)) != std::string::npos; at = end) {
    end = std::min(code.find_first_not_of(in_names, at), code.size());
    const std::string name = code.substr(at, end - at);
    if ((at > 0 && in_names.find(code[at - 1]) != std::string_view::npos) ||
        (name != symbol && name[symbol.size()] != '_'))
      continue;
    const std::string_view before = std::string_view(code).substr(0, at), after = std::string_view(code).substr(end);
    if (before.ends_with("struct ") || before.ends_with("enum ")) {
      declared.tags.insert(name);
      continue;
    }
    const std::size_t last = before.find_last_not_of(" \n");
    const bool is_enumerator = last != std::string_view::npos && (before[last] == '{' || before[last] == ',');
    if (is_enumerator || after.starts_with("(") || after.starts_with("[]") || after.starts_with(";"))
      declared.names.insert(name);
  }
  return declared;
}

TUNEWRIGHT_INLINE std::string_view kind_of_export(std::string_view text, const std::string& symbol) {
  static constexpr std::pair<std::string_view, std::string_view> kinds[] = {
      {"KERNEL", "a kernel"}, {"NETWORK", "a network"}, {"LAUNCHER", "a program for GPUs"}};
  for (const auto& [mark, kind] : kinds)
    if (text.find("\n#ifndef TUNEWRIGHT_" + std::string(mark) + "_" + symbol + "_H\n") != std::string_view::npos)
      return kind;
  return {};
}

TUNEWRIGHT_INLINE void check_names(const std::filesystem::path& directory, const std::string& symbol,
                                   std::string_view text) {
  const std::filesystem::path own = directory / (symbol + ".h");
  const std::string_view kind = kind_of_export(text, symbol);
  if (const std::string_view before = kind_of_export(read_file(own).value_or(""), symbol);
      !before.empty() && before != kind) {
    throw std::invalid_argument("'" + own.string() + "' is the header of " + std::string(before) + " '" + symbol +
                                "', which the export of " + std::string(kind) +
                                " of that name would replace; export one of them under another name, or into another "
                                "folder");
  }
  const DeclaredNames declared = declared_names(text, symbol);
  std::set<std::string> others;  // every symbol of which one of what is declared can be
  for (const std::set<std::string>* names : {&declared.names, &declared.tags})
    for (const std::string& name : *names)
      for (std::size_t end = 1; end <= name.size(); ++end)
        if (end == name.size() || name[end] == '_') others.insert(name.substr(0, end));
  others.erase(symbol);
  for (const std::string& other : others) {
    const std::filesystem::path path = directory / (other + ".h");
    std::string of_other;
    for (const std::filesystem::path& file : {path, directory / (other + ".c")})
      if (const std::string read = read_file(file).value_or(""); read.starts_with("/* Generated by tunewright"))
        of_other += read;
    const auto check_apart = [&](const std::set<std::string>& own_names, const std::set<std::string>& its_names,
                                 const std::string& kind_of_name) {
      for (const std::string& name : its_names) {
        if (!own_names.contains(name)) continue;
        throw std::invalid_argument("the exports '" + symbol + "' and '" + other + "', which has '" + path.string() +
                                    "', would both declare " + kind_of_name + name +
                                    "; export one of them under another name, or into the folder of another program");
      }
    };
    const DeclaredNames of_it = declared_names(of_other, other);
    check_apart(declared.names, of_it.names, "");
    check_apart(declared.tags, of_it.tags, "the tag ");
  }
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
