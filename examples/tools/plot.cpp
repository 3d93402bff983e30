// SPDX-License-Identifier: Apache-2.0
//
// tunewright-plot: plots of journals.
//
//   tunewright-plot --out=plots matmul.jsonl                        all plots that the journal has data for
//   tunewright-plot --line=OpenBLAS:0.21 a.jsonl b.jsonl            two journals, with a library's 0.21 ms as a line
//   tunewright-plot --peak=150 --bandwidth=20 matmul.jsonl          with the roof of this machine
// [snippet-begin program]
#include "tunewright/study/journal_plots.hpp"

int main(int argc, char** argv) { return tunewright::study::plot_command(argc, argv); }
// [snippet-end program]
