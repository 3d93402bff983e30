// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/detail/config.hpp"

/// Limits what a process that runs kernels may request from the system: memory, and its own threads. Generated kernels
/// request nothing; the limits protect against code from elsewhere and against mistakes.
namespace tunewright::measurers::sandbox {

struct Confinement {
  /// Refuse system calls that affect other processes, the network, or files for writing. A kernel that makes one ends
  /// with SIGSYS. Opening a socket, or a file for writing, fails instead with `EACCES`, because libraries try these at
  /// startup and work without them.
  bool filter_system_calls = true;
  /// Writable memory in addition to what the process has at its start. 0: half of the machine's memory, which may be
  /// more than the container has; the largest number: no limit. There is no limit either if /proc/self/statm cannot be
  /// read.
  std::uint64_t memory_bytes = 0;
  std::uint64_t open_files = 256;  ///< open descriptors
  /// Maximum size of files that the process inherits for writing, such as a log behind standard error.
  std::uint64_t file_bytes = std::uint64_t{1} << 30;
};

/// Whether the program is compiled with a sanitizer for leaks or races, which starts its own process at the end.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool has_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(leak_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool has_sanitizer = true;
#else
inline constexpr bool has_sanitizer = false;
#endif
#else
inline constexpr bool has_sanitizer = false;
#endif

/// Whether the system can filter calls: a Linux kernel with seccomp, not under an emulator of processors.
[[nodiscard]] bool can_filter_system_calls() noexcept;

/// Confines this process permanently. Kernels run at the same speed: the filter costs only in system calls, and
/// requests no mitigation that slows other code down.
///
/// Limits apply to the process, but the filter only to the calling thread and to threads that it starts later, so call
/// it before there are others. What the system does not support is skipped, and lower limits are kept. Errors: only
/// `std::bad_alloc`.
void confine(const Confinement& limits);

/// Filters the system calls of a worker process, which passes kernels to the processes that run them, as `confine`
/// does, but allows it to share memory and use sockets that it has. Call it after forking the zygote. Does nothing with
/// a sanitizer, which could not report leaks.
void confine_worker();

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(sandbox)

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

namespace tunewright::measurers::sandbox {

namespace confinement {

#if defined(__x86_64__)
inline constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
inline constexpr std::uint32_t architecture = 0;
#endif

/// A seccomp program, which sees number and arguments of a call. Calls that no rule refuses are allowed.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    unless_equal(architecture, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    load_call();
#if defined(__x86_64__)
    jump(BPF_JGE, 0x40000000, 0, 1);  // the x32 numbers of the same calls
    refuse();
#endif
  }

  void refuse(std::uint32_t call) {
    jump(BPF_JEQ, call, 0, 1);
    refuse();
  }
  /// The call fails with ENOSYS, as on an older system: libraries then use another call whose arguments can be checked.
  void hide(std::uint32_t call) {
    jump(BPF_JEQ, call, 0, 1);
    fail_with(ENOSYS);
  }
  /// The call fails with EACCES, as without permission.
  void deny(std::uint32_t call) {
    jump(BPF_JEQ, call, 0, 1);
    fail_with(EACCES);
  }
  /// The call fails with EACCES if one of these bits of its argument is set.
  void deny_bits(std::uint32_t call, unsigned argument, std::uint32_t bits) {
    jump(BPF_JEQ, call, 0, 4);
    load_argument(argument);
    jump(BPF_JSET, bits, 0, 1);
    fail_with(EACCES);
    load_call();
  }
  /// Refuses the call unless its argument has this value.
  void require_equal(std::uint32_t call, unsigned argument, std::uint32_t value) {
    jump(BPF_JEQ, call, 0, 4);
    load_argument(argument);
    jump(BPF_JEQ, value, 1, 0);
    refuse();
    load_call();
  }
  /// Refuses the call if its argument has this value.
  void refuse_equal(std::uint32_t call, unsigned argument, std::uint32_t value) {
    jump(BPF_JEQ, call, 0, 4);
    load_argument(argument);
    jump(BPF_JEQ, value, 0, 1);
    refuse();
    load_call();
  }
  /// Refuses the call unless one of these bits of its argument is set.
  void require_bits(std::uint32_t call, unsigned argument, std::uint32_t bits) {
    jump(BPF_JEQ, call, 0, 4);
    load_argument(argument);
    jump(BPF_JSET, bits, 1, 0);
    refuse();
    load_call();
  }
  /// Refuses the call if one of `bits` of its argument is set and, if `others` is given, one of those as well.
  void refuse_bits(std::uint32_t call, unsigned argument, std::uint32_t bits, std::uint32_t others = 0) {
    const bool two = others != 0;
    jump(BPF_JEQ, call, 0, two ? 5 : 4);
    load_argument(argument);
    if (two) jump(BPF_JSET, others, 0, 2);
    jump(BPF_JSET, bits, 0, 1);
    refuse();
    load_call();
  }
  /// Refuses the call unless its argument, a pointer, is null.
  void require_null(std::uint32_t call, unsigned argument) {
    jump(BPF_JEQ, call, 0, 6);
    load_argument(argument);
    jump(BPF_JEQ, 0, 0, 2);
    load_upper_half(argument);
    jump(BPF_JEQ, 0, 1, 0);
    refuse();
    load_call();
  }
  [[nodiscard]] std::vector<sock_filter> take() {
    allow();
    return std::move(code_);
  }

 private:
  void add(unsigned code, std::uint32_t value) { code_.push_back({static_cast<std::uint16_t>(code), 0, 0, value}); }
  void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
  /// The lower half of the argument: flags, processes and descriptors have no other.
  void load_argument(unsigned argument) { load(offsetof(seccomp_data, args) + 8 * std::size_t{argument}); }
  void load_upper_half(unsigned argument) { load(offsetof(seccomp_data, args) + 8 * std::size_t{argument} + 4); }
  void jump(unsigned test, std::uint32_t value, unsigned if_true, unsigned if_false) {
    code_.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), static_cast<std::uint8_t>(if_true),
                     static_cast<std::uint8_t>(if_false), value});
  }
  void unless_equal(std::uint32_t value, unsigned skip) { jump(BPF_JEQ, value, skip, 0); }
  /// Every rule ends with this load, because the next one expects the call's number.
  void load_call() { load(offsetof(seccomp_data, nr)); }
  void refuse() { add(BPF_RET | BPF_K, SECCOMP_RET_TRAP); }
  void fail_with(std::uint32_t error) { add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error); }
  void allow() { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }

  std::vector<sock_filter> code_;
};

/// Calls that no worker makes.
inline constexpr long refused_calls[] = {
    // the network, and calls that circumvent this filter
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_sendmmsg,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    // other processes; memory outside the limit
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_setsid,
    SYS_setpgid,
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_sched_setscheduler,
    SYS_sched_setparam,
    SYS_sched_setattr,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_unshare,
    SYS_setns,
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_msgget,
    SYS_msgctl,
    SYS_msgsnd,
    SYS_semget,
    SYS_semctl,
    SYS_semop,
    SYS_userfaultfd,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_setrlimit,
    // files
    SYS_truncate,
    SYS_unlinkat,
    SYS_renameat2,
#ifdef SYS_renameat
    SYS_renameat,
#endif
    SYS_linkat,
    SYS_symlinkat,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_fchmodat,
    SYS_fchmod,
    SYS_fchownat,
    SYS_fchown,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_fallocate,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_by_handle_at,
    SYS_mq_open,
    SYS_mq_unlink,
    // the machine
    SYS_reboot,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_swapon,
    SYS_swapoff,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_acct,
    SYS_quotactl,
    // numbers, which are the same on all processors, because headers of older systems lack the names
    428,  // open_tree
    429,  // move_mount
    430,  // fsopen
    431,  // fsconfig
    432,  // fsmount
    438,  // pidfd_getfd
    440,  // process_madvise
    442,  // mount_setattr
    447,  // memfd_secret
    448,  // process_mrelease
    452,  // fchmodat2
    463,  // setxattrat
    466,  // removexattrat
    467,  // open_tree_attr
    469,  // file_setattr
#if defined(__x86_64__)
    SYS_fork,
    SYS_vfork,
    SYS_unlink,
    SYS_rename,
    SYS_link,
    SYS_symlink,
    SYS_mkdir,
    SYS_rmdir,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
};

[[nodiscard]] inline std::vector<sock_filter> filter_for(std::uint32_t process, bool runs_kernels) {
  Filter filter;
  if (runs_kernels) {
    for (const long call : {SYS_socketpair, SYS_sendto, SYS_memfd_create})
      filter.refuse(static_cast<std::uint32_t>(call));
  }
  for (const long call : refused_calls) filter.refuse(static_cast<std::uint32_t>(call));
  filter.hide(SYS_clone3);
  filter.hide(SYS_openat2);
  filter.hide(SYS_tkill);  // reaches any thread of the system; libraries use tgkill
  filter.deny(SYS_socket);
  filter.require_bits(SYS_clone, 0, CLONE_THREAD);
  filter.require_equal(SYS_kill, 0, process);
  filter.require_equal(SYS_tgkill, 0, process);
  filter.require_null(SYS_prlimit64, 2);  // reading limits is allowed
  constexpr std::uint32_t to_write = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  filter.deny_bits(SYS_openat, 2, to_write);
#if defined(__x86_64__)
  filter.deny_bits(SYS_open, 1, to_write);
  filter.deny(SYS_creat);
#endif
  // The memory limit does not count shared memory and stacks.
  filter.refuse_bits(SYS_mmap, 3, MAP_SHARED, MAP_ANONYMOUS);
  filter.refuse_bits(SYS_mmap, 3, MAP_GROWSDOWN);
  filter.refuse_equal(SYS_ioctl, 1, TIOCSTI);  // inserts input into the terminal
  // The owner of a descriptor receives signals for it, and the owner could be set to the tuner.
  for (const int request : {FIOSETOWN, SIOCSPGRP})
    filter.refuse_equal(SYS_ioctl, 1, static_cast<std::uint32_t>(request));
  for (const int command : {F_SETOWN, F_SETOWN_EX, F_SETSIG})
    filter.refuse_equal(SYS_fcntl, 1, static_cast<std::uint32_t>(command));
  return filter.take();
}

inline void limit(decltype(RLIMIT_DATA) what, std::uint64_t value) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return;
  now.rlim_cur = std::min<rlim_t>(now.rlim_cur, value);
  now.rlim_max = std::min<rlim_t>(now.rlim_max, value);
  static_cast<void>(::setrlimit(what, &now));
}

/// Bytes of this process that count for `RLIMIT_DATA`.
[[nodiscard]] inline std::uint64_t writable_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  for (int field = 0; field < 6; ++field) file >> pages;
  return file ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace confinement

TUNEWRIGHT_INLINE bool can_filter_system_calls() noexcept {
  const std::uint32_t action = SECCOMP_RET_TRAP;
  return confinement::architecture != 0 && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

namespace confinement {
inline void install(bool runs_kernels) {
  if (!can_filter_system_calls()) return;
  std::vector<sock_filter> code = filter_for(static_cast<std::uint32_t>(::getpid()), runs_kernels);
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  // Without the flag, some kernels disable speculative store bypass for the process, which slows all its code down.
  static_cast<void>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program));
}
}  // namespace confinement

TUNEWRIGHT_INLINE void confine(const Confinement& limits) {
  const std::uint64_t machine =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (const std::uint64_t present = confinement::writable_bytes(); present > 0) {
    const std::uint64_t further = limits.memory_bytes > 0 ? limits.memory_bytes : machine / 2;
    confinement::limit(RLIMIT_DATA, present + std::min(further, std::numeric_limits<std::uint64_t>::max() - present));
  }
  confinement::limit(RLIMIT_NOFILE, limits.open_files);
  confinement::limit(RLIMIT_FSIZE, limits.file_bytes);
  if (limits.filter_system_calls) confinement::install(true);
}

TUNEWRIGHT_INLINE void confine_worker() {
  if (!has_sanitizer) confinement::install(false);
}

}  // namespace tunewright::measurers::sandbox

#endif
