// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/detail/config.hpp"

/// Names of what is exported as C: which are possible, and whether two exports of one folder would declare the same.
namespace tunewright::codegen::detail {

[[nodiscard]] std::string c_identifier(std::string_view name);

/// The same for functions, types and files of their own: followed by _ if C or C++ gives the name, or one that begins
/// with it, another meaning, as they do to `double`, if it is that of a header, or if names of the runtime begin so.
[[nodiscard]] std::string c_symbol(std::string_view name);

/// The names as C identifiers, numbered from 2 on if several are equal or one is in `taken`; this also holds for names
/// between `prefix` and `suffix`.
[[nodiscard]] std::vector<std::string> c_names(std::span<const std::string> names, std::set<std::string> taken,
                                               std::string_view prefix, std::string_view suffix);

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

}  // namespace tunewright::codegen::detail

#if TUNEWRIGHT_DEFINES(codegen)

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "tunewright/codegen/keywords.hpp"
#include "tunewright/core/read_file.hpp"
#include "tunewright/core/word_list.hpp"

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

}  // namespace tunewright::codegen::detail

#endif
