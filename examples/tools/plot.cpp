// SPDX-License-Identifier: Apache-2.0
//
// tunewright-plot: pictures of what journals hold.
//
//   tunewright-plot --out=plots matmul.jsonl                        everything that the journal has numbers for
//   tunewright-plot --line=OpenBLAS:0.21 a.jsonl b.jsonl            two journals, and the 0.21 ms of a library
//   tunewright-plot --peak=150 --bandwidth=20 matmul.jsonl          with the roof of this machine
// [snippet-begin program]
#include "tunewright/study/journal_plots.hpp"

int main(int argc, char** argv) { return tunewright::study::plot_command(argc, argv); }
// [snippet-end program]
