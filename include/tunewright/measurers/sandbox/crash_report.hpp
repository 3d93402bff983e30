// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/records.hpp"

/// A worker's crash report. The handlers use only functions that are async-signal-safe: they look the address up in a
/// fixed table, write one record to the socket and end the process.
namespace tunewright::measurers::sandbox {

namespace crash_report {

int& socket() noexcept;
/// Static, because it is too large for the alternate stack.
Reply& record() noexcept;

void on_signal(int signal, siginfo_t* info, void* context);

/// The worker itself never calls exit(), so a kernel did.
void on_exit_call(int status, void*);

/// Installs the signal handlers of this process. A fork inherits handlers of a sanitizer or the tuner, which these
/// replace. Throws `std::system_error`.
void install(int report_socket);

}  // namespace crash_report

/// "SIGSEGV", or "signal 35" for one without a name, such as a real-time signal.
[[nodiscard]] std::string signal_name(int signal);

/// The failure that a crash record describes: `OutOfBounds` for an address near a buffer, otherwise `RunError`.
[[nodiscard]] Failure failure_of(const Reply& reply);
/// The failure of a worker that a signal ended before a handler could write a record.
[[nodiscard]] Failure failure_without_report(int signal);

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(measurers)

#include "tunewright/measurers/sandbox/guarded_memory.hpp"

namespace tunewright::measurers::sandbox::crash_report {

TUNEWRIGHT_INLINE int& socket() noexcept {
  static constinit int fd = -1;
  return fd;
}

TUNEWRIGHT_INLINE Reply& record() noexcept {
  static constinit Reply reply;
  return reply;
}

TUNEWRIGHT_INLINE void on_signal(int signal, siginfo_t* info, void* context) {
  // A second fault, e.g. in another thread, must not overwrite the first report.
  static constinit std::atomic<bool> reporting{false};
  static_assert(std::atomic<bool>::is_always_lock_free, "a handler may wait for no lock");
  if (reporting.exchange(true)) {
    for (;;) ::pause();
  }
  Reply& reply = record();
  reply.kind = Reply::Kind::Crashed;
  reply.signal = signal;
  // Codes above 0 come from the hardware; only those have an address.
  const bool has_address = info != nullptr && info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS);
  reply.address = has_address ? reinterpret_cast<std::uintptr_t>(info->si_addr) : 0;
  if (info != nullptr && info->si_code > 0 && signal == SIGSYS)
    reply.address = static_cast<std::uintptr_t>(info->si_syscall);
#if defined(__x86_64__)
  if (const auto* machine = static_cast<const ucontext_t*>(context)) {
    reply.stack_pointer = static_cast<std::uintptr_t>(machine->uc_mcontext.gregs[REG_RSP]);
    reply.writes = static_cast<std::uint32_t>((machine->uc_mcontext.gregs[REG_ERR] >> 1) & 1);
  }
#else
  static_cast<void>(context);
#endif
  for (const GuardedRegion& region : guarded_regions()) {
    if (!has_address || !region.covers(reply.address)) continue;
    reply.data_begin = region.data_begin;
    reply.data_end = region.data_end;
    std::memcpy(reply.buffer.data(), region.name, sizeof region.name);
  }
  static_cast<void>(send_record(socket(), reply));
  ::_exit(128 + signal);
}

TUNEWRIGHT_INLINE void on_exit_call(int status, void*) {
  Reply& reply = record();
  reply.kind = Reply::Kind::Exited;
  reply.signal = status;
  static_cast<void>(send_record(socket(), reply));
  ::_exit(status);
}

TUNEWRIGHT_INLINE void install(int report_socket) {
  socket() = report_socket;
  // Handlers use their own stack, because a stack overflow is one of the faults.
  static char alternate[64 * 1024];
  stack_t stack{};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof alternate;
  if (::sigaltstack(&stack, nullptr) != 0) throw_system_error("sigaltstack");
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXFSZ}) {
    if (::sigaction(signal, &action, nullptr) != 0) throw_system_error("sigaction");
  }
  // Runs before all handlers that were registered earlier, so the tuner's (leak checks, test reports) do not run in the
  // worker.
  if (::on_exit(on_exit_call, nullptr) != 0) throw_system_error("on_exit");
}

}  // namespace tunewright::measurers::sandbox::crash_report

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE std::string signal_name(int signal) {
  const char* abbreviation = signal > 0 && signal < NSIG ? ::sigabbrev_np(signal) : nullptr;
  return abbreviation != nullptr ? "SIG" + std::string(abbreviation) : "signal " + std::to_string(signal);
}

inline constexpr const char* not_for_kernels =
    ", which kernels may not make (no processes, connections or files to write)";

TUNEWRIGHT_INLINE Failure failure_of(const Reply& reply) {
  if (reply.kind == Reply::Kind::Exited) {
    return {Fault::RunError, "the kernel ended the process with status " + std::to_string(reply.signal)};
  }
  const std::string name = signal_name(reply.signal);
  const std::string verb = reply.writes != 0 ? "wrote" : "read";
  if (reply.data_begin != 0) {
    const std::string buffer = "'" + text_of(reply.buffer) + "'";
    if (reply.address >= reply.data_end) {
      return {Fault::OutOfBounds,
              verb + " " + std::to_string(reply.address - reply.data_end) + " bytes after the end of buffer " + buffer};
    }
    if (reply.address < reply.data_begin) {
      return {Fault::OutOfBounds, verb + " " + std::to_string(reply.data_begin - reply.address) +
                                      " bytes before the start of buffer " + buffer};
    }
    return {Fault::OutOfBounds,
            verb + " to read-only buffer " + buffer + " at byte " + std::to_string(reply.address - reply.data_begin)};
  }
  if (reply.signal == SIGSEGV || reply.signal == SIGBUS) {
    const std::uintptr_t distance =
        reply.address > reply.stack_pointer ? reply.address - reply.stack_pointer : reply.stack_pointer - reply.address;
    char at[32];
    std::snprintf(at, sizeof at, "%#zx", static_cast<std::size_t>(reply.address));
    // A stack overflow faults close to the stack pointer.
    if (reply.stack_pointer != 0 && distance < (std::uintptr_t{1} << 16)) {
      return {Fault::RunError, name + ": stack overflow (" + verb + " at " + at + ")"};
    }
    return {Fault::RunError, name + ": " + verb + " at " + at + ", far from every buffer"};
  }
  if (reply.signal == SIGSYS)
    return {Fault::RunError, name + ": made system call " + std::to_string(reply.address) + not_for_kernels};
  if (reply.signal == SIGXFSZ) return {Fault::RunError, name + ": wrote more to a file than kernels may"};
  return {Fault::RunError, "ended by " + name};
}

TUNEWRIGHT_INLINE Failure failure_without_report(int signal) {
  if (signal == SIGSYS) {
    return {Fault::RunError,
            "SIGSYS: made a system call, with signals blocked as in fork()" + std::string(not_for_kernels)};
  }
  return {Fault::RunError,
          "ended by " + signal_name(signal) + " without a report; a stack overflow of a thread does that"};
}

}  // namespace tunewright::measurers::sandbox

#endif
