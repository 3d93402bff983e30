// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "support/temporary_folder.hpp"

namespace tunewright::test {

[[nodiscard]] inline bool has_c_compiler() {
  static const bool has = std::system("cc --version > /dev/null 2>&1") == 0;
  return has;
}

/// A folder for main.c and what it is compiled with.
class CProgram {
 public:
  [[nodiscard]] std::string path() const { return folder_.path(); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

  void write_main(const std::string& text) const { std::ofstream(file("main.c")) << text; }
  /// Compiles main.c with `linked`, files of the folder and options; whether that worked. `said` then has what the
  /// compiler says.
  [[nodiscard]] bool compiles(const std::string& linked = "", const std::string& options = "-std=c11") const {
    return std::system(("cd " + path() + " && cc " + options + " -Wall -Wextra -Wpedantic -Werror -o program main.c " +
                        linked + " > said 2>&1")
                           .c_str()) == 0;
  }
  [[nodiscard]] std::string said() const {
    std::ifstream text(file("said"));
    return {std::istreambuf_iterator<char>(text), {}};
  }
  /// Whether what was compiled ends with success.
  [[nodiscard]] bool succeeds() const { return std::system(file("program").c_str()) == 0; }

 private:
  support::TemporaryFolder folder_;
};

}  // namespace tunewright::test
