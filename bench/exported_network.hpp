// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "shared_library.hpp"
#include "tunewright/codegen/exported_names.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/export.hpp"

namespace tunewright::bench {

/// A network exported to C, compiled into a shared library, and loaded into this process with a team of the C runtime.
class ExportedNetworkLibrary {
 public:
  /// Inputs are those of `values`. Helper w of the team keeps to `processors[w]`, where the caller is number 0, as in a
  /// `codegen::PinnedTeam`; without any, helpers run where the caller may. Everything is written to `folder`.
  ExportedNetworkLibrary(const networks::CompiledNetwork& compiled, const reference::Tensors& values,
                         std::span<const int> processors, const std::filesystem::path& folder)
      : ExportedNetworkLibrary(compiled, values, processors,
                               networks::export_network(compiled.network(), compiled.partition(), compiled.kernels(),
                                                        values, "exported", folder),
                               folder / "exported.so") {}

  void run() const {
    if (run_(network_.get(), runtime_) != 0) throw std::runtime_error("the exported network does not run");
  }

 private:
  /// What a function of the library makes, and another one ends.
  using Owned = std::unique_ptr<void, void (*)(void*)>;

  ExportedNetworkLibrary(const networks::CompiledNetwork& compiled, const reference::Tensors& values,
                         std::span<const int> processors, const networks::ExportedNetwork& files,
                         const std::filesystem::path& library)
      : library_(built(files, library)) {
    void* made = nullptr;
    if (find<int(const char*, void**)>("exported_load")(files.weights.c_str(), &made) != 0)
      throw std::runtime_error("the exported network does not load its weights");
    weights_ = Owned(made, find<void(void*)>("exported_unload"));
    if (find<int(const void*, void**)>("exported_create")(weights_.get(), &made) != 0)
      throw std::runtime_error("the exported network cannot be created");
    network_ = Owned(made, find<void(void*)>("exported_destroy"));
    const auto create_team = find<void*(unsigned, const int*, std::size_t)>("tunewright_team_create");
    team_ = Owned(
        create_team(compiled.kernels()[0].threads, processors.empty() ? nullptr : processors.data(), processors.size()),
        find<void(void*)>("tunewright_team_destroy"));
    if (team_ == nullptr) throw std::runtime_error("the C runtime makes no team");
    runtime_ = find<const void*(const void*)>("tunewright_team_runtime")(team_.get());
    run_ = find<int(void*, const void*)>("exported_run");
    for (const networks::TensorId id : networks::inputs(compiled.network())) {
      const std::string name = codegen::detail::c_identifier(compiled.network().graph->op(id).name);
      std::memcpy(find<void*(void*)>("exported_input_" + name)(network_.get()), values[id].data(),
                  values[id].size_in_bytes());
    }
  }

  /// Compiles the library; returns its path.
  static std::string built(const networks::ExportedNetwork& files, const std::filesystem::path& library) {
    const std::string command = "cc -std=c11 -O2 -shared -fPIC -pthread -o '" + library.string() + "' '" +
                                files.source.string() + "' '" + files.runtime.source.string() +
                                "' -Wl,--whole-archive '" + files.library.string() + "' -Wl,--no-whole-archive -lm";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("this failed: " + command);
    return std::filesystem::absolute(library).string();
  }

  template <class F>
  [[nodiscard]] F* find(const std::string& symbol) const {
    F* found = nullptr;
    library_.find(found, symbol.c_str());
    return found;
  }

  SharedLibrary library_;
  // In this order, because a team ends before what it computes with.
  Owned weights_{nullptr, nullptr}, network_{nullptr, nullptr}, team_{nullptr, nullptr};
  const void* runtime_ = nullptr;
  int (*run_)(void*, const void*) = nullptr;
};

}  // namespace tunewright::bench
