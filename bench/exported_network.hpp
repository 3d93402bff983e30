// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "shared_library.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/export.hpp"

namespace tunewright::bench {

/// A network exported to C, compiled into a shared library, and loaded into this process with a team of the C runtime.
class ExportedNetworkLibrary {
 public:
  /// Inputs are those of `values`. Everything is written to `folder`.
  ExportedNetworkLibrary(const networks::CompiledNetwork& compiled, const reference::Tensors& values,
                         const std::filesystem::path& folder)
      : ExportedNetworkLibrary(compiled, values,
                               networks::export_network(compiled.network(), compiled.partition(), compiled.kernels(),
                                                        values, "exported", folder),
                               folder / "exported.so") {}

  void run() const {
    if (run_(network_, runtime_) != 0) throw std::runtime_error("the exported network does not run");
  }

 private:
  ExportedNetworkLibrary(const networks::CompiledNetwork& compiled, const reference::Tensors& values,
                         const networks::ExportedNetwork& files, const std::filesystem::path& library)
      : library_(built(files, library)) {
    void* weights = nullptr;
    if (find<int(const char*, void**)>("exported_load")(files.weights.c_str(), &weights) != 0 ||
        find<int(const void*, void**)>("exported_create")(weights, &network_) != 0)
      throw std::runtime_error("the exported network does not load its weights");
    void* team = find<void*(unsigned, const int*, std::size_t)>("tunewright_team_create")(compiled.kernels()[0].threads,
                                                                                          nullptr, 0);
    if (team == nullptr) throw std::runtime_error("the C runtime makes no team");
    runtime_ = find<const void*(const void*)>("tunewright_team_runtime")(team);
    run_ = find<int(void*, const void*)>("exported_run");
    for (const networks::TensorId id : networks::inputs(compiled.network())) {
      const std::string name = codegen::detail::c_identifier(compiled.network().graph->op(id).name);
      std::memcpy(find<void*(void*)>("exported_input_" + name)(network_), values[id].data(),
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
  void* network_ = nullptr;
  const void* runtime_ = nullptr;
  int (*run_)(void*, const void*) = nullptr;
};

}  // namespace tunewright::bench
