# SPDX-License-Identifier: Apache-2.0
# Docstrings as Doxygen reads them: "SamplerFor<M>" is no HTML. Formulas, which are indented, and what is in backticks stay.
/^ *\/\/\/ ? ? ?[^ ]/ {
  count = split($0, part, "`")
  line = ""
  for (i = 1; i <= count; ++i) {
    if (i % 2 == 1) gsub(/</, "\\\\<", part[i])
    line = line (i > 1 ? "`" : "") part[i]
  }
  print line
  next
}
{ print }
