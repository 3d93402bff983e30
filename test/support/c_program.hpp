// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "support/temporary_folder.hpp"

namespace tunewright::test {

/// Runs a command of the shell in `folder`; whether it ended with success.
[[nodiscard]] inline bool runs_in(const std::string& folder, const std::string& command) {
  return std::system(("cd '" + folder + "' && " + command).c_str()) == 0;
}

/// The compiler that tests are configured with, for a command of the shell.
inline const std::string c_compiler = "'" TUNEWRIGHT_C_COMPILER "'";

/// A folder for main.c and what it is compiled with.
class CProgram {
 public:
  [[nodiscard]] std::string path() const { return folder_.path(); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

  void write_main(const std::string& text) const { std::ofstream(file("main.c")) << text; }
  /// Compiles main.c with `linked`, files of the folder and options; whether that worked. `said` then has what the
  /// compiler says.
  [[nodiscard]] bool compiles(const std::string& linked = "", const std::string& options = "-std=c11") const {
    return runs_in(path(), c_compiler + " " + options + " -Wall -Wextra -Wpedantic -Werror -o program main.c " +
                               linked + " > said 2>&1");
  }
  [[nodiscard]] std::string said() const {
    std::ifstream text(file("said"));
    return {std::istreambuf_iterator<char>(text), {}};
  }
  /// Whether what was compiled ends with success.
  [[nodiscard]] bool succeeds() const { return runs_in(path(), "./program"); }

 private:
  support::TemporaryFolder folder_;
};

}  // namespace tunewright::test
