// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

/// Runs inline PTX of tensor units on the host: statements of assembly become calls that hand over the text and its
/// operands, and what the 32 threads of a warp have handed over is interpreted, by the layouts that the instruction set
/// prescribes. Fragments of `wmma`, whose layout it leaves open, are scrambled.
namespace tunewright::test {

/// Text that is compiled after what host_cuda.hpp has of warps.
inline constexpr const char* host_ptx_prelude = R"(
#include <cstdio>
#include <string>
// Shared memory has addresses of 32 bits.
static std::size_t __cvta_generic_to_shared(const void* p) { return (std::size_t)((const char*)p - shared_window); }
namespace {
struct Operand { void* place; std::uint64_t value; };
template <class T> Operand ptx_out(T& x) { static_assert(sizeof x == 4); return {&x, 0}; }
template <class T> Operand ptx_in(const T& x) { static_assert(sizeof x == 4 || sizeof x == 8); Operand o{nullptr, 0}; std::memcpy(&o.value, &x, sizeof x); return o; }
unsigned bits_of(const Operand& o) { unsigned u; std::memcpy(&u, o.place ? o.place : &o.value, 4); return u; }
void put(const Operand& o, unsigned u) { if (!o.place) std::abort(); std::memcpy(o.place, &u, 4); }
[[noreturn]] void wrong(const std::string& text, const char* why) { std::fprintf(stderr, "%s: %s\n", text.c_str(), why); std::abort(); }

/// An instruction as a warp runs it: its name in parts, and the numbers of the operands in each of its vectors.
struct Ptx {
  std::string text;
  std::vector<std::string> name;
  std::vector<std::vector<int>> vectors;
  const Operand* operands[32];
  explicit Ptx(const char* from) : text(from) {
    std::size_t at = 0;
    for (name.emplace_back(); text[at] != ' '; ++at) {
      if (text[at] == '.') name.emplace_back(); else name.back() += text[at];
    }
    bool inside = false;
    for (; text[at] != ';'; ++at) {
      if (text[at] == '{') { inside = true; vectors.emplace_back(); }
      if (text[at] == '}') inside = false;
      if (text[at] == '%') { if (!inside) vectors.emplace_back(); vectors.back().push_back(std::atoi(&text[at + 1])); }
    }
  }
  bool has(const char* part) const { for (const std::string& n : name) if (n == part) return true; return false; }
  const Operand& operand(int lane, int vector, int i) const { return operands[lane][vectors.at(vector).at(i)]; }
  unsigned in(int lane, int vector, int i) const { return bits_of(operand(lane, vector, i)); }
  void out(int lane, int vector, int i, unsigned u) const { put(operand(lane, vector, i), u); }
  char* address(int lane, int vector, std::size_t alignment) const {
    char* p = shared_window + (int)in(lane, vector, 0);
    if ((std::uintptr_t)p % alignment != 0) wrong(text, "the address is not aligned");
    return p;
  }
  void expect(int vector, std::size_t registers) const { if (vectors.at(vector).size() != registers) wrong(text, "another number of registers"); }
};
enum Type { f16, bf16, s8, u8, f32, s32 };
Type type_of(const std::string& name) {
  int found = 0;
  for (const char* known : {"f16", "bf16", "s8", "u8", "f32", "s32"}) { if (name == known) return (Type)found; ++found; }
  wrong(name, "no such type");
}
double number(Type type, const void* p) {
  switch (type) {
    case f16: { _Float16 h; std::memcpy(&h, p, 2); return (double)h; }
    case bf16: { unsigned short b; std::memcpy(&b, p, 2); return __uint_as_float((unsigned)b << 16); }
    case s8: return *(const signed char*)p;
    case u8: return *(const unsigned char*)p;
    case f32: { float f; std::memcpy(&f, p, 4); return f; }
    default: { int i; std::memcpy(&i, p, 4); return i; }
  }
}
int bytes_of(Type type) { return type == f16 || type == bf16 ? 2 : type == s8 || type == u8 ? 1 : 4; }
unsigned as_bits(Type type, double x) {
  if (type == f32) return __float_as_uint((float)x);
  return (unsigned)(long long)x;
}
double element(const Ptx& p, Type type, int lane, int vector, int i) {
  const int size = bytes_of(type), each = 4 / size;
  const unsigned word = p.in(lane, vector, i / each);
  return number(type, (const char*)&word + i % each * size);
}
struct At { int row, column; };

// mma.sync: the tables of the instruction set, with its names of lanes.
struct Shape { int m, n, k; };
At place_in_a(Shape s, int lane, int i) {
  const int group = lane >> 2, in_group = lane % 4;
  if (s.m == 8 && s.k == 16) return {group, in_group * 4 + i};
  if (s.k == 8) return {i < 2 ? group : group + 8, in_group * 2 + (i & 1)};
  if (s.k == 16) return {i < 2 || (4 <= i && i < 6) ? group : group + 8, in_group * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  return {i < 4 || (8 <= i && i < 12) ? group : group + 8, in_group * 4 + (i & 3) + (i < 8 ? 0 : 16)};
}
At place_in_b(Shape s, int lane, int i) {
  const int group = lane >> 2, in_group = lane % 4;
  if (s.m == 8 && s.k == 16) return {in_group * 4 + i, group};
  if (s.k == 8) return {in_group * 2 + i, group};
  if (s.k == 16) return {in_group * 2 + (i & 1) + (i < 2 ? 0 : 8), group};
  return {in_group * 4 + (i & 3) + (i < 4 ? 0 : 16), group};
}
At place_in_c(Shape s, int lane, int i) {
  const int group = lane >> 2, in_group = lane % 4;
  return {s.m == 8 || i < 2 ? group : group + 8, in_group * 2 + (i & 1)};
}
void multiply(const Ptx& p) {
  Shape s;
  if (std::sscanf(p.name.at(3).c_str(), "m%dn%dk%d", &s.m, &s.n, &s.k) != 3) wrong(p.text, "no shape");
  const Type sum = type_of(p.name.at(6)), a = type_of(p.name.at(7)), b = type_of(p.name.at(8));
  const bool bytes = bytes_of(a) == 1;
  const bool large = s.m == 16 && s.n == 8 && s.k == (bytes ? 32 : 16);
  const bool small = bytes ? s.m == 8 && s.n == 8 && s.k == 16 : s.m == 16 && s.n == 8 && s.k == 8 && a == f16;
  if ((!large && !small) || (large && __CUDA_ARCH__ < 800)) wrong(p.text, "no such instruction");
  if (!p.has("row") || !p.has("col") || type_of(p.name.at(9)) != sum || sum != (bytes ? s32 : f32) || (bytes ? bytes_of(b) != 1 : b != a)) wrong(p.text, "no such types");
  const int in_a = s.m * s.k / 32, in_b = s.k * s.n / 32, in_c = s.m * s.n / 32;
  p.expect(0, in_c); p.expect(1, in_a * bytes_of(a) / 4); p.expect(2, in_b * bytes_of(b) / 4); p.expect(3, in_c);
  double x[16][32], y[32][8], z[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < in_a; ++i) { const At at = place_in_a(s, lane, i); x[at.row][at.column] = element(p, a, lane, 1, i); }
    for (int i = 0; i < in_b; ++i) { const At at = place_in_b(s, lane, i); y[at.row][at.column] = element(p, b, lane, 2, i); }
    for (int i = 0; i < in_c; ++i) { const At at = place_in_c(s, lane, i); z[at.row][at.column] = element(p, sum, lane, 3, i); }
  }
  for (int r = 0; r < s.m; ++r) for (int c = 0; c < s.n; ++c) for (int t = 0; t < s.k; ++t) z[r][c] += x[r][t] * y[t][c];
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < in_c; ++i) { const At at = place_in_c(s, lane, i); p.out(lane, 0, i, as_bits(sum, z[at.row][at.column])); }
}

// ldmatrix: lanes 8 q to 8 q + 7 tell where the rows of matrix q begin.
void load_matrices(const Ptx& p) {
  if (!p.has("m8n8") || !p.has("x4") || !p.has("shared") || !p.has("b16")) wrong(p.text, "no such instruction");
  p.expect(0, 4);
  unsigned short elements[4][8][8];
  for (int lane = 0; lane < 32; ++lane) std::memcpy(elements[lane / 8][lane % 8], p.address(lane, 1, 16), 16);
  for (int lane = 0; lane < 32; ++lane) {
    for (int q = 0; q < 4; ++q) {
      unsigned word = 0;
      for (int half = 0; half < 2; ++half) {
        const int row = lane / 4, column = lane % 4 * 2 + half;
        word |= (unsigned)(p.has("trans") ? elements[q][column][row] : elements[q][row][column]) << 16 * half;
      }
      p.out(lane, 0, q, word);
    }
  }
}

// wmma: lanes hold elements in an order of our own, another for each matrix and way to store it.
int scrambled(int lane, int slots, int i, int key) { return ((lane * slots + i) * (2 * key + 37) + 5 * key) % 256; }
int key_of(char matrix, bool by_columns) { return matrix == 'c' ? 1 : matrix == 'a' ? (by_columns ? 2 : 3) : (by_columns ? 4 : 5); }
int registers_of(Type type) { return type == f16 ? 8 : type == bf16 ? 4 : type == f32 || type == s32 ? 8 : 2; }
void wmma(const Ptx& p) {
  if (!p.has("m16n16k16")) wrong(p.text, "no such shape");
  const std::string what = p.name.at(1);
  if (what == "mma") {
    const bool a_by_columns = p.name.at(4) == "col", b_by_columns = p.name.at(5) == "col";
    const bool halves = p.name.size() == 9;  // types of the sums alone
    const Type sum = type_of(p.name.at(7)), a = halves ? f16 : type_of(p.name.at(8)), b = halves ? f16 : type_of(p.name.at(9));
    p.expect(0, 8); p.expect(1, registers_of(a)); p.expect(2, registers_of(b)); p.expect(3, 8);
    if (a != b || type_of(p.name.back()) != sum) wrong(p.text, "no such types");
    double x[256], y[256], z[256];
    const int slots = registers_of(a) * 4 / bytes_of(a);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < slots; ++i) {
        x[scrambled(lane, slots, i, key_of('a', a_by_columns))] = element(p, a, lane, 1, i);
        y[scrambled(lane, slots, i, key_of('b', b_by_columns))] = element(p, b, lane, 2, i);
      }
      for (int i = 0; i < 8; ++i) z[scrambled(lane, 8, i, key_of('c', false))] = element(p, sum, lane, 3, i);
    }
    for (int r = 0; r < 16; ++r) for (int c = 0; c < 16; ++c) for (int t = 0; t < 16; ++t) z[16 * r + c] += x[16 * r + t] * y[16 * t + c];
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 8; ++i) p.out(lane, 0, i, as_bits(sum, z[scrambled(lane, 8, i, key_of('c', false))]));
    return;
  }
  const bool loads = what == "load";
  const Type type = type_of(p.name.back());
  const int memory = loads ? 1 : 0, fragment = loads ? 0 : 1, size = bytes_of(type);
  const bool by_columns = p.has("col");
  p.expect(fragment, registers_of(type));
  const int slots = registers_of(type) * 4 / size, key = key_of(loads ? p.name.at(2)[0] : 'c', by_columns);
  const int pitch = (int)p.in(0, 2, 0);
  // Each row begins at a multiple of the bytes that a thread gets of a fragment; 16 is the least that the C++ functions
  // ask for.
  const std::size_t alignment = 4 * registers_of(type) < 16 ? 16 : 4 * registers_of(type);
  if (pitch * size % alignment != 0) wrong(p.text, "rows do not begin where they must");
  for (int lane = 0; lane < 32; ++lane) {
    char* first = p.address(lane, memory, alignment);
    if (p.in(lane, memory, 0) != p.in(0, memory, 0) || (int)p.in(lane, 2, 0) != pitch) wrong(p.text, "lanes differ in where");
    for (int r = 0; r < registers_of(type); ++r) {
      unsigned word = loads ? 0 : p.in(lane, fragment, r);
      for (int part = 0; part < 4 / size; ++part) {
        const int e = scrambled(lane, slots, r * (4 / size) + part, key), row = e / 16, column = e % 16;
        char* place = first + size * (by_columns ? column * pitch + row : row * pitch + column);
        char* in_word = (char*)&word + part * size;
        std::memcpy(loads ? in_word : place, loads ? place : in_word, size);
      }
      if (loads) p.out(lane, fragment, r, word);
    }
  }
}

void run_by_warp(const Ptx& p) {
  if (!p.has("sync") || !p.has("aligned")) wrong(p.text, "not done by a warp");
  if (p.name[0] == "wmma") return wmma(p);
  if (p.name[0] == "ldmatrix") return load_matrices(p);
  if (p.name[0] == "mma") return multiply(p);
  wrong(p.text, "no such instruction");
}
struct HandedOver { const char* text; const Operand* operands; } handed_over[1024];
/// The last thread of a warp to arrive does it for all of them, whose operands are where they left them.
void run_ptx(const char* text, std::initializer_list<Operand> operands) {
  const unsigned me = number_in_block(block_size), first = me / 32 * 32;
  handed_over[me] = {text, operands.begin()};
  if (threads_of_warp_at(me) != 32) wrong(text, "a warp of fewer threads");
  at_barrier_of_warp([&] {
    Ptx p(text);
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (std::strcmp(handed_over[first + lane].text, text) != 0) wrong(text, "lanes run different instructions");
      p.operands[lane] = handed_over[first + lane].operands;
    }
    run_by_warp(p);
  });
}
}
)";

/// `source` with its statements of assembly as calls of `run_ptx`, or, for warp groups, of `run_wgmma`.
inline std::string with_interpreted_assembly(const std::string& source) {
  std::string result;
  std::size_t at = 0;
  const auto skip = [&] {
    while (std::isspace(static_cast<unsigned char>(source.at(at))) != 0) ++at;
  };
  const auto quoted = [&] {  // without its quotes
    const std::size_t begin = ++at;
    at = source.find('"', begin);
    return source.substr(begin, at++ - begin);
  };
  const std::string keyword = "asm volatile(";
  while (true) {
    const std::size_t begin = source.find(keyword, at);
    result += source.substr(at, begin - at);
    if (begin == std::string::npos) return result;
    at = begin + keyword.size();
    std::string text;
    for (skip(); source.at(at) == '"'; skip()) text += quoted();
    std::string operands;
    for (int section = 0; source.at(at) != ')'; skip()) {
      if (source.at(at) == ':') {
        ++section;
        ++at;
      } else if (source.at(at) == ',') {
        ++at;
      } else {
        const std::string constraint = quoted();
        if (section == 3) continue;  // what it clobbers
        const std::size_t open = at;
        int depth = 0;
        do {
          depth += source.at(at) == '(' ? 1 : source.at(at) == ')' ? -1 : 0;
          ++at;
        } while (depth != 0);
        const bool out = constraint[0] == '=' || constraint[0] == '+';
        if (out != (section == 1)) throw std::runtime_error("operand of another section in: " + text);
        operands +=
            (operands.empty() ? "" : ", ") + std::string(out ? "ptx_out" : "ptx_in") + source.substr(open, at - open);
      }
    }
    ++at;
    const bool of_warp_group =
        text.find("wgmma.") != std::string::npos || text.find("fence.proxy.") != std::string::npos;
    if (!text.empty()) result += (of_warp_group ? "run_wgmma(\"" : "run_ptx(\"") + text + "\", {" + operands + "})";
  }
}

}  // namespace tunewright::test
