// SPDX-License-Identifier: Apache-2.0
#pragma once

// Newer MPI libraries no longer have the C++ bindings of MPI 2.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/remote/conversation.hpp"
#include "tunewright/measurers/remote/frames.hpp"
#include "tunewright/measurers/remote/serve.hpp"

namespace tunewright::measurers::mpi {

/// Frames to and from one other rank: each is one MPI message, whose tag is the kind of the frame.
///
/// It never blocks in MPI, because MPI waits by polling, which keeps a processor busy: it tests for messages and sleeps
/// for up to half a millisecond. Sending waits for the other end only while more than 64 MiB are in transit.
class RankLink final : public remote::FrameCarrier {
 public:
  /// `process` is the process of the other rank if that runs on this host, so that its end is noticed at once;
  /// otherwise 0. Payloads of more than `receive_limit` bytes are dropped and reported as errors.
  RankLink(MPI_Comm communicator, int rank, pid_t process, std::size_t receive_limit)
      : communicator_(communicator), rank_(rank), process_(process), receive_limit_(receive_limit) {}
  RankLink(RankLink&&) = default;

  void send(remote::FrameKind kind, std::span<const char> payload, Seconds timeout) override;
  [[nodiscard]] remote::Frame receive(Seconds timeout) override;

  /// Sends the end of the conversation without waiting until it is received. `finalize`: all ranks are alive and will
  /// finalize MPI together.
  void close(bool finalize);
  /// Whether no message is in transit to the other end, or the other end has ended.
  [[nodiscard]] bool all_taken();
  /// Whether the other end's `close` said that all ranks finalize MPI together.
  [[nodiscard]] bool finalizes() const noexcept { return finalizes_; }
  /// Whether the other rank is known to have ended; only ranks on this host can be checked.
  [[nodiscard]] bool gone() const noexcept;
  [[nodiscard]] pid_t process() const noexcept { return process_; }

 private:
  struct Outgoing {
    std::vector<char> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void post(int tag, std::span<const char> payload);
  void reap();

  MPI_Comm communicator_;
  int rank_;
  pid_t process_;
  std::size_t receive_limit_;
  std::list<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  bool finalizes_ = false;
};

/// The ranks of an MPI program: rank 0 tunes, the others measure.
///
///   int main() {
///     measurers::mpi::World world;             // before any thread exists
///     if (!world.is_manager()) return world.serve();
///     Tuner<...> tuner{{.measurer = {.world = &world}}};
///     ...
///   }
///
/// The constructor starts MPI, after it has forked the process that runs kernels: a later fork would copy MPI's state.
/// Construct it once and use it only from the constructing thread. Its messages use a communicator of their own. Ranks
/// on one host that may use the same processors divide these evenly; processors bound by mpirun stay bound.
///
/// The destructor ends the other ranks, including lost ones that still live, and finalizes MPI unless a rank was lost:
/// MPI cannot finalize then, and processes end without it.
///
/// Errors: `std::logic_error` for a second object and for calls of the other role; `std::runtime_error` if MPI fails,
/// or does not support programs with threads.
class World {
 public:
  World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  [[nodiscard]] bool is_manager() const noexcept { return rank_ == 0; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Number of ranks, including the manager.
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Measures for the manager until it ends: the task of every rank but 0. Options without processors get those of this
  /// rank. Returns the value for `main` to return: 0, or 1 after printing the error to standard error.
  int serve(remote::ServeOptions options = {});

  /// The communicator of the library's messages; `MPI_COMM_WORLD` is left to the program.
  [[nodiscard]] MPI_Comm communicator() const noexcept { return communicator_; }

  // For the manager only.

  /// The conversation with a rank; the first call starts it.
  [[nodiscard]] remote::Conversation& worker(int rank, Seconds timeout);
  /// A rank whose message has arrived; waits for at most `timeout`.
  [[nodiscard]] std::optional<int> wait(Seconds timeout);
  /// Key of the task that a rank is prepared for, shared by all measurers; 0: none.
  [[nodiscard]] std::uint64_t& task_key(int rank) { return peers_.at(static_cast<std::size_t>(rank)).task_key; }
  /// Marks a rank as lost; only the first reason is kept.
  void lose(int rank, const std::string& reason);
  [[nodiscard]] const std::optional<std::string>& lost(int rank) const {
    return peers_.at(static_cast<std::size_t>(rank)).lost;
  }
  /// Whether a rank is known to have ended; only ranks on this host can be checked.
  [[nodiscard]] bool gone(int rank) const { return peers_.at(static_cast<std::size_t>(rank)).link.gone(); }
  /// The rank's process if it is on this host, else 0.
  [[nodiscard]] pid_t process(int rank) const { return peers_.at(static_cast<std::size_t>(rank)).link.process(); }

 private:
  struct Peer {
    RankLink link;
    std::unique_ptr<remote::Conversation> conversation{};
    std::optional<std::string> lost{};
    std::uint64_t task_key = 0;
  };

  [[nodiscard]] std::vector<int> share_of_processors(MPI_Comm on_this_host) const;
  /// The rank of an arrived message: `rank` itself or, for `MPI_ANY_SOURCE`, any.
  [[nodiscard]] std::optional<int> probe(int rank) const;

  std::unique_ptr<remote::Worker> worker_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<Peer> peers_;  // indexed by rank; a worker uses only the manager's
  std::vector<int> processors_;
};

}  // namespace tunewright::measurers::mpi

#if TUNEWRIGHT_DEFINES(mpi)

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/host_target.hpp"

namespace tunewright::measurers::mpi {

namespace world {
inline constexpr int end_tag = 0;  // no kind of frame has this number
inline constexpr std::size_t outgoing_limit_bytes = std::size_t{64} << 20;

inline void require_success(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw std::runtime_error(std::string(call) + ": " + text.data());
}

/// Sleeps a little longer with each call.
class Pause {
 public:
  void operator()() {
    ::usleep(microseconds_);
    microseconds_ = std::min(2 * microseconds_, 500U);
  }

 private:
  unsigned microseconds_ = 15;
};
}  // namespace world

TUNEWRIGHT_INLINE bool RankLink::gone() const noexcept {
  return process_ > 0 && ::kill(process_, 0) != 0 && errno == ESRCH;
}

TUNEWRIGHT_INLINE void RankLink::reap() {
  for (auto at = outgoing_.begin(); at != outgoing_.end();) {
    int done = 0;
    if (MPI_Test(&at->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      throw remote::Disconnected("MPI reports that a message to it failed");
    if (done == 0) return;  // messages to one rank arrive in order
    outgoing_bytes_ -= at->bytes.size();
    at = outgoing_.erase(at);
  }
}

TUNEWRIGHT_INLINE void RankLink::post(int tag, std::span<const char> payload) {
  Outgoing& message = outgoing_.emplace_back(Outgoing{{payload.begin(), payload.end()}});
  outgoing_bytes_ += payload.size();
  if (MPI_Isend(message.bytes.data(), static_cast<int>(payload.size()), MPI_BYTE, rank_, tag, communicator_,
                &message.request) != MPI_SUCCESS)
    throw remote::Disconnected("MPI reports that nothing can be sent to it");
}

TUNEWRIGHT_INLINE void RankLink::send(remote::FrameKind kind, std::span<const char> payload, Seconds timeout) {
  if (payload.size() > 0x7fffffffU) throw std::length_error("a frame of 2 GiB or more does not travel over MPI");
  const auto start = std::chrono::steady_clock::now();
  reap();
  for (world::Pause pause; outgoing_bytes_ > world::outgoing_limit_bytes; reap()) {
    if (gone()) throw remote::EndOfConversation("it has ended");
    if (timeout.count() >= 0 && std::chrono::steady_clock::now() - start > timeout)
      throw remote::Disconnected("it did not take a message for " + std::to_string(timeout.count()) + " s");
    pause();
  }
  post(static_cast<int>(kind), payload);
}

TUNEWRIGHT_INLINE remote::Frame RankLink::receive(Seconds timeout) {
  const auto start = std::chrono::steady_clock::now();
  MPI_Status status;
  MPI_Message message = MPI_MESSAGE_NULL;
  for (world::Pause pause;; pause()) {
    int there = 0;
    if (MPI_Improbe(rank_, MPI_ANY_TAG, communicator_, &there, &message, &status) != MPI_SUCCESS)
      throw remote::Disconnected("MPI reports that it cannot be heard");
    if (there != 0) break;
    reap();
    if (gone()) throw remote::EndOfConversation("it has ended");
    if (timeout.count() >= 0 && std::chrono::steady_clock::now() - start > timeout)
      throw remote::Disconnected("it was not heard of for " + std::to_string(timeout.count()) + " s");
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  // A message that is too long is received as well, since MPI cannot drop it and it would block all later ones.
  remote::Frame frame{static_cast<remote::FrameKind>(status.MPI_TAG),
                      std::vector<char>(static_cast<std::size_t>(std::max(bytes, 0)))};
  if (MPI_Mrecv(frame.payload.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    throw remote::Disconnected("MPI reports that a message from it failed");
  if (frame.payload.size() > receive_limit_) {
    throw remote::ProtocolError("a frame of " + std::to_string(bytes) + " bytes, where at most " +
                                std::to_string(receive_limit_) + " are taken");
  }
  if (status.MPI_TAG == world::end_tag) {
    finalizes_ = bytes == 1;
    throw remote::EndOfConversation("it has ended the conversation");
  }
  return frame;
}

TUNEWRIGHT_INLINE void RankLink::close(bool finalize) {
  const char all_leave = 1;
  post(world::end_tag, std::span(&all_leave, finalize ? 1 : 0));
}

TUNEWRIGHT_INLINE bool RankLink::all_taken() {
  reap();
  return outgoing_.empty() || gone();
}

TUNEWRIGHT_INLINE World::World() {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun != 0) throw std::logic_error("MPI runs already; make one mpi::World, and let it start MPI");
  worker_ = std::make_unique<remote::Worker>();
  int threads = MPI_THREAD_SINGLE;
  world::require_success(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads), "MPI_Init_thread");
  if (threads < MPI_THREAD_FUNNELED)
    throw std::runtime_error("this MPI allows no threads, which rank 0 compiles with; build or choose one that does");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // errors without a communicator are reported there
  world::require_success(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);

  MPI_Comm on_this_host = MPI_COMM_NULL;
  world::require_success(MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &on_this_host),
                         "MPI_Comm_split_type");
  int count = 0;
  MPI_Comm_size(on_this_host, &count);
  const std::array<int, 2> own{rank_, static_cast<int>(::getpid())};
  std::vector<std::array<int, 2>> local_processes(static_cast<std::size_t>(count));
  world::require_success(MPI_Allgather(own.data(), 2, MPI_INT, local_processes.data(), 2, MPI_INT, on_this_host),
                         "MPI_Allgather");
  processors_ = share_of_processors(on_this_host);
  MPI_Comm_free(&on_this_host);

  for (int rank = 0; rank < size_; ++rank) {
    const auto at =
        std::find_if(local_processes.begin(), local_processes.end(), [&](const auto& one) { return one[0] == rank; });
    // In another container this number may belong to no process.
    const pid_t process = at != local_processes.end() && ::kill((*at)[1], 0) == 0 ? (*at)[1] : 0;
    peers_.push_back({RankLink(communicator_, rank, process,
                               is_manager() ? remote::reply_limit_bytes : remote::request_limit_bytes)});
  }
  if (is_manager()) worker_.reset();
}

TUNEWRIGHT_INLINE std::vector<int> World::share_of_processors(MPI_Comm on_this_host) const {
  const std::vector<int> processors = host_processors();
  StableHash hash;
  for (const int processor : processors) hash.add(static_cast<std::uint64_t>(processor));
  const std::array<std::uint64_t, 2> own{static_cast<std::uint64_t>(rank_), hash.value()};
  int count = 0;
  MPI_Comm_size(on_this_host, &count);
  std::vector<std::array<std::uint64_t, 2>> all(static_cast<std::size_t>(count));
  world::require_success(MPI_Allgather(own.data(), 2, MPI_UINT64_T, all.data(), 2, MPI_UINT64_T, on_this_host),
                         "MPI_Allgather");
  std::size_t sharing = 0, before = 0;
  for (const auto& [rank, set] : all) {
    if (rank == 0 || set != own[1]) continue;  // the manager compiles in the remaining time
    ++sharing;
    if (rank < own[0]) ++before;
  }
  if (rank_ == 0 || sharing <= 1 || processors.empty()) return processors;
  const std::size_t each = processors.size() / sharing;
  if (each == 0) {
    std::fprintf(stderr, "rank %d: %zu ranks measure on %zu processors and disturb each other\n", rank_, sharing,
                 processors.size());
    return {processors[before % processors.size()]};
  }
  const auto begin = processors.begin() + static_cast<std::ptrdiff_t>(before * each);
  return {begin, begin + static_cast<std::ptrdiff_t>(each)};
}

TUNEWRIGHT_INLINE World::~World() {
  bool finalize = is_manager()
                      ? std::none_of(peers_.begin(), peers_.end(),
                                     [](const Peer& peer) { return peer.lost.has_value() || peer.link.gone(); })
                      : peers_.front().link.finalizes();
  if (is_manager()) {
    std::vector<RankLink*> told;
    for (int rank = 1; rank < size_; ++rank) {
      RankLink& link = peers_[static_cast<std::size_t>(rank)].link;
      try {
        if (link.gone()) continue;
        link.close(finalize);
        told.push_back(&link);
      } catch (const std::exception&) {  // it ends by itself when it finds this process gone
      }
    }
    for (int turn = 0; turn < 2000 && !told.empty(); ++turn) {
      std::erase_if(told, [](RankLink* link) {
        try {
          return link->all_taken();
        } catch (const std::exception&) {
          return true;
        }
      });
      if (!told.empty()) ::usleep(500);
    }
  }
  if (!finalize) return;
  MPI_Comm_free(&communicator_);
  MPI_Finalize();
}

TUNEWRIGHT_INLINE int World::serve(remote::ServeOptions options) {
  if (is_manager())
    throw std::logic_error("rank 0 tunes and does not serve; start the program with mpirun and more ranks");
  if (options.processors.empty()) options.processors = processors_;
  try {
    worker_->serve(peers_.front().link, options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank_, error.what());
    return 1;
  }
}

TUNEWRIGHT_INLINE remote::Conversation& World::worker(int rank, Seconds timeout) {
  if (!is_manager() || rank < 1 || rank >= size_) {
    throw std::logic_error("rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " asked for worker " +
                           std::to_string(rank) + "; rank 0 has workers, from 1 on");
  }
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.conversation) peer.conversation = std::make_unique<remote::Conversation>(peer.link, timeout);
  return *peer.conversation;
}

TUNEWRIGHT_INLINE std::optional<int> World::probe(int rank) const {
  int there = 0;
  MPI_Status status;
  world::require_success(MPI_Iprobe(rank, MPI_ANY_TAG, communicator_, &there, &status), "MPI_Iprobe");
  return there != 0 ? std::optional(status.MPI_SOURCE) : std::nullopt;
}

TUNEWRIGHT_INLINE std::optional<int> World::wait(Seconds timeout) {
  const auto start = std::chrono::steady_clock::now();
  for (world::Pause pause;;) {
    const std::optional<int> any = probe(MPI_ANY_SOURCE);
    if (any) {
      if (!lost(*any)) return any;
      // Messages of a rank that is already lost are discarded.
      try {
        static_cast<void>(peers_[static_cast<std::size_t>(*any)].link.receive(Seconds(0)));
      } catch (const std::exception&) {
      }
      // A lost rank that keeps sending must not hide the messages of the others.
      for (int rank = 1; rank < size_; ++rank) {
        if (!lost(rank) && probe(rank)) return rank;
      }
    }
    if (std::chrono::steady_clock::now() - start >= timeout) return std::nullopt;
    if (!any) pause();
  }
}

TUNEWRIGHT_INLINE void World::lose(int rank, const std::string& reason) {
  std::optional<std::string>& why = peers_.at(static_cast<std::size_t>(rank)).lost;
  if (!why) why = reason;
}

}  // namespace tunewright::measurers::mpi

#endif
