// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/plots/figure.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

using namespace tunewright;

TEST_CASE("a figure is one script with its data before its commands") {
  const support::TemporaryFolder folder;
  study::Figure figure("matmul.best_so_far", 640, 480);
  figure.command("set xlabel 'trials'");
  const std::vector<std::vector<double>> rows{{1, 0.5}, {2, std::numeric_limits<double>::infinity()}};
  CHECK(figure.add_data(rows) == "$data0");
  CHECK(figure.add_data({}) == "$data1");
  figure.command("plot $data0 with lines");
  const auto path = figure.write(folder.path());
  CHECK(path.filename() == "matmul.best_so_far.gp");
  std::ifstream in(path);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) ==
        "set terminal svg size 640,480 background 'white'\nset output 'matmul.best_so_far.svg'\n"
        "$data0 << EOD\n1 0.5\n2 NaN\nEOD\n$data1 << EOD\nEOD\n"
        "set xlabel 'trials'\nplot $data0 with lines\n");
  CHECK_THROWS_WITH_AS((void)figure.write(folder.file("missing")), doctest::Contains("name another folder"),
                       std::runtime_error);
}

TEST_CASE("text is quoted for gnuplot, names become names of files") {
  CHECK(study::Figure::quoted("Pruner's\ndraft") == "'Pruner''s draft'");
  CHECK(study::file_name("matmul 64x64, fp16/int8-v1.2") == "matmul_64x64__fp16_int8-v1.2");
}

TEST_CASE("names of files are short enough for file systems") {
  CHECK(study::file_name(std::string(300, 'n')) == std::string(160, 'n'));
}

TEST_CASE("a script is run in its own folder, whatever that is called and wherever a shell would look for it") {
  const support::TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("bin"));
  std::ofstream(folder.file("bin/gnuplot")) << "#!/bin/sh\ntest -f \"$1\" && touch drawn\n";
  std::filesystem::permissions(folder.file("bin/gnuplot"), std::filesystem::perms::owner_all);
  std::filesystem::create_directories(folder.file("elsewhere/plots"));
  const std::string path = std::getenv("PATH");
  const std::filesystem::path before = std::filesystem::current_path();
  ::setenv("PATH", (folder.file("bin") + ":" + path).c_str(), 1);
  ::setenv("CDPATH", folder.file("elsewhere").c_str(), 1);
  std::filesystem::current_path(folder.path());
  for (const std::filesystem::path plots : {"plots", "-x", "it's \"one\"", ""}) {
    if (!plots.empty()) std::filesystem::create_directory(plots);
    const std::vector<std::filesystem::path> scripts{study::Figure("f").write(plots)};
    CHECK(study::draw(scripts) == std::vector<std::filesystem::path>{plots / "f.svg"});
    CHECK(std::filesystem::exists(plots / "drawn"));
  }
  std::filesystem::current_path(before);
  ::unsetenv("CDPATH");
  ::setenv("PATH", path.c_str(), 1);
}

TEST_CASE("no script, no picture") { CHECK(study::draw({}).empty()); }
