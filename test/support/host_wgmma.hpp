// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs products of warp groups on the host, by what the instruction set promises and no more: they see shared memory
/// as their fences have it and read it at any time up to the wait, where sums arrive. Until then there is something
/// else in their registers. What is not promised makes sums wrong; what is no instruction ends the program.
namespace tunewright::test {

/// Text that is compiled in front of what runs threads: shared memory as tensor units see it.
inline constexpr const char* host_async_proxy_prelude = R"(
// The shared memory of the program that runs.
static char *shared_window, *shared_window_end;
namespace {
constexpr char never_written = (char)0xa5, not_seen = 0x7f;
struct AsyncProxy {
  bool used = false;
  unsigned blocks = 0;           // that have been started
  std::vector<char> last, seen;  // bytes as they were when a thread stopped, and as tensor units see them
  std::vector<std::vector<std::size_t>> written;  // by each thread since the barrier
  void start(bool is_used, std::size_t threads) {
    used = is_used;
    ++blocks;
    if (!used) return;
    const std::size_t size = shared_window_end - shared_window;
    std::memset(shared_window, never_written, size);
    last.assign(size, never_written);
    seen.assign(size, not_seen);
    written.assign(threads, {});
  }
  /// What has changed has been written by the thread that ran.
  void note(unsigned thread) {
    constexpr std::size_t piece = 256;
    for (std::size_t first = 0; used && first < last.size(); first += piece) {
      const std::size_t bytes = last.size() - first < piece ? last.size() - first : piece;
      if (std::memcmp(&last[first], shared_window + first, bytes) == 0) continue;
      for (std::size_t i = first; i < first + bytes; ++i)
        if (shared_window[i] != last[i]) note(thread, shared_window + i, 1);
    }
  }
  void note(unsigned thread, const char* to, int size) {
    for (std::size_t i = to - shared_window; used && size-- > 0; ++i) {
      last[i] = shared_window[i];
      seen[i] = not_seen;
      written[thread].push_back(i);
    }
  }
  /// A fence of that thread: what it has written since the barrier is seen, whoever else may see it later.
  void fence(unsigned thread) {
    note(thread);
    for (const std::size_t i : written[thread]) seen[i] = last[i];
  }
  void barrier(unsigned thread) {
    note(thread);
    for (auto& of_thread : written) of_thread.clear();
  }
};
AsyncProxy async_proxy;
}
)";

/// Text that is compiled after what interprets other instructions.
inline constexpr const char* host_wgmma_prelude = R"(
#include <map>
namespace {
struct Matrix {  // of shared memory, as a descriptor and the bit for transposition tell
  std::size_t first, leading, stride;
  bool transposed, swizzled; int size;
  Matrix(const std::string& text, std::uint64_t d, bool by_lines, int bytes) : transposed(by_lines), size(bytes) {
    const auto field = [&](int bit) { return (std::size_t)((d >> bit) % 16384 * 16); };
    first = field(0), leading = field(16), stride = field(32);
    swizzled = d >> 62 == 1;
    if (d & ~0x40003fff3fff3fffull) wrong(text, "swizzled by less than 128 bytes, or with bits that mean nothing");
    if (swizzled && (std::uintptr_t)shared_window % 1024 != 0) wrong(text, "shared memory begins within a pattern");
  }
  /// 16 bytes of each of eight rows are contiguous, rows being of terms, or of lines where it is transposed. PTX ISA,
  /// section "Canonical Layouts": ((8,m),(T,2k)):((1T,SBO),(1,LBO)) and ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO)).
  /// Swizzled, rows have 128 bytes: ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO)) where transposed, else ((8,m),(T,2k)):((8T,SBO),(1,T)),
  /// and bits 4 to 6 of an address are exchanged by bits 7 to 9.
  std::size_t place(int line, int term) const {
    const int row = transposed ? term : line, byte = (transposed ? line : term) * size;
    if (swizzled) {
      const std::size_t at = first + row / 8 * stride + byte / 128 * leading + row % 8 * 128 + byte % 128;
      return at ^ (at >> 7 & 7) << 4;
    }
    const std::size_t next_rows = transposed ? leading : stride, next_bytes = transposed ? stride : leading;
    return first + row / 8 * next_rows + byte / 16 * next_bytes + row % 8 * 16 + byte % 16;
  }
};
struct Product {
  std::string text;
  Type sum, a, b;
  int n, k;
  std::vector<void*> registers[128];
  std::vector<char> factors, raw;  // as tensor units see them, and as threads do
  std::vector<std::size_t> places;
  bool in_order;
};
constexpr unsigned in_flight = 0x7fc0ffee;  // not a number, and a large one
struct WarpGroup {
  unsigned arrived = 0;
  bool in_order = false;  // behind what threads have done with registers
  std::vector<Product> started;
  std::vector<std::vector<Product>> committed;
  std::map<void*, unsigned> sums;  // of registers that are in flight
};
std::vector<WarpGroup> warp_groups;
unsigned block_of_groups = 0;
std::vector<char> seen_at(const std::vector<std::size_t>& places) {
  std::vector<char> all;
  for (const std::size_t p : places) all.push_back(async_proxy.seen[p]);
  return all;
}
std::vector<char> raw_at(const std::vector<std::size_t>& places) {
  std::vector<char> all;
  for (const std::size_t p : places) all.push_back(shared_window[p]);
  return all;
}
/// Row and column of register i of a thread, by the figure of accumulators with 64 rows.
At place_in_d(int thread, int i) {
  const int warp = thread >> 5, lane = thread & 31, eight_columns = i >> 2, below = i >> 1 & 1;
  return {16 * warp + (lane >> 2) + 8 * below, 8 * eight_columns + 2 * (lane & 3) + (i & 1)};
}
Product started_product(const std::string& text, const Operand* const* operands) {
  Product p;
  p.text = text;
  char predicate[16], used[16], sum[8], a[8], b[8];
  int value = 0, m = 0, negate_a = 1, negate_b = 1, by_rows_a = 0, by_rows_b = 0;
  const char* name = std::strstr(text.c_str(), "wgmma.mma_async.sync.aligned.");
  const char* tail = std::strstr(text.c_str(), "}, ");
  if (!name || !tail || std::sscanf(text.c_str(), "{ .reg .pred %15[a-z]; setp.ne.b32 %*[a-z], %d, 0;", predicate, &value) != 2 ||
      std::sscanf(name, "wgmma.mma_async.sync.aligned.m%dn%dk%d.%7[a-z0-9].%7[a-z0-9].%7[a-z0-9] {", &m, &p.n, &p.k, sum, a, b) != 6)
    wrong(text, "not in the form that is known");
  int first = 0, second = 0;
  const int fields = std::sscanf(tail, "}, %%%d, %%%d, %15[a-z], %d, %d, %d, %d;", &first, &second, used, &negate_a, &negate_b, &by_rows_a, &by_rows_b);
  p.sum = type_of(sum), p.a = type_of(a), p.b = type_of(b);
  const bool bytes = bytes_of(p.a) == 1;
  if (__CUDA_ARCH__ != 900) wrong(text, "no such instruction here");
  if (m != 64 || p.n % (bytes ? 16 : 8) != 0 || p.n > 256 || p.k * bytes_of(p.a) != 32) wrong(text, "no such shape");
  if (bytes ? bytes_of(p.b) != 1 || p.sum != s32 : p.b != p.a || p.sum != f32) wrong(text, "no such types");
  if (fields != (bytes ? 3 : 7) || value != 1 || std::strcmp(used, predicate) != 0 || negate_a != 1 || negate_b != 1) wrong(text, "operands are missing");
  const int registers = p.n / 2;
  if (first != registers || second != registers + 1) wrong(text, "another number of registers");
  for (int t = 0; t < 128; ++t) {
    for (int i = 0; i < registers; ++i) p.registers[t].push_back(operands[t][i].place);
    if (operands[t][first].value != operands[0][first].value || operands[t][second].value != operands[0][second].value) wrong(text, "threads describe different matrices");
  }
  const int size = bytes_of(p.a);
  const Matrix x(text, operands[0][first].value, by_rows_a == 1, size), y(text, operands[0][second].value, by_rows_b == 1, size);
  const auto add = [&](const Matrix& matrix, int lines) {
    for (int l = 0; l < lines; ++l) for (int t = 0; t < p.k; ++t) for (int b = 0; b < size; ++b) {
      const std::size_t place = matrix.place(l, t) + b;
      if (place >= async_proxy.seen.size()) wrong(text, "outside of shared memory");
      p.places.push_back(place);
    }
  };
  add(x, 64);
  add(y, p.n);
  p.factors = seen_at(p.places);
  p.raw = raw_at(p.places);
  return p;
}
void complete(WarpGroup& group, const Product& p) {
  const bool held_still = p.in_order && seen_at(p.places) == p.factors && raw_at(p.places) == p.raw;
  const int size = bytes_of(p.a), second = 64 * p.k * size;
  std::vector<double> z(64 * p.n);
  for (int r = 0; r < 64; ++r) for (int c = 0; c < p.n; ++c) for (int t = 0; t < p.k; ++t)
    z[r * p.n + c] += number(p.a, &p.factors[(r * p.k + t) * size]) * number(p.b, &p.factors[second + (c * p.k + t) * size]);
  for (int t = 0; t < 128; ++t) for (int i = 0; i < p.n / 2; ++i) {
    unsigned& sum = group.sums.at(p.registers[t][i]);
    const At at = place_in_d(t, i);
    sum = held_still ? as_bits(p.sum, number(p.sum, &sum) + z[at.row * p.n + at.column]) : in_flight;
  }
}
void run_by_group(WarpGroup& group, const std::string& text, const Operand* const* operands) {
  if (text == "wgmma.fence.sync.aligned;") {
    group.in_order = true;
  } else if (text == "wgmma.commit_group.sync.aligned;") {
    group.committed.push_back(std::move(group.started));
    group.started.clear();
  } else if (int but = 0; std::sscanf(text.c_str(), "wgmma.wait_group.sync.aligned %d;", &but) == 1) {
    for (; (int)group.committed.size() > but; group.committed.erase(group.committed.begin()))
      for (const Product& p : group.committed.front()) complete(group, p);
    if (!group.committed.empty() || !group.started.empty()) return;
    for (const auto& [place, sum] : group.sums) {
      unsigned now;
      std::memcpy(&now, place, 4);
      if (now == in_flight) std::memcpy(place, &sum, 4);  // else what threads have put there in between
    }
    group.sums.clear();
    group.in_order = false;
  } else {
    group.started.push_back(started_product(text, operands));
    Product& p = group.started.back();
    p.in_order = group.in_order;
    for (const auto& registers : p.registers) for (void* place : registers) {
      if (group.sums.count(place) != 0) continue;
      std::memcpy(&group.sums[place], place, 4);
      std::memcpy(place, &in_flight, 4);
    }
  }
}
/// The last thread of a warp group to arrive does it for all of them.
void run_wgmma(const char* text, std::initializer_list<Operand> operands) {
  const unsigned me = number_in_block(block_size), first = me / 128 * 128;
  if (std::strcmp(text, "fence.proxy.async.shared::cta;") == 0) return async_proxy.fence(me);
  if (block_of_groups != async_proxy.blocks) warp_groups.assign(8, {});
  block_of_groups = async_proxy.blocks;
  WarpGroup& group = warp_groups[me / 128];
  handed_over[me] = {text, operands.begin()};
  if (fibers.size() < first + 128) wrong(text, "a warp group of fewer threads");
  if (++group.arrived < 128) return wait();
  group.arrived = 0;
  const Operand* all[128];
  for (unsigned t = 0; t < 128; ++t) {
    if (std::strcmp(handed_over[first + t].text, text) != 0) wrong(text, "threads run different instructions");
    all[t] = handed_over[first + t].operands;
    fibers[first + t].waits = false;
  }
  run_by_group(group, text, all);
}
}
)";

}  // namespace tunewright::test
