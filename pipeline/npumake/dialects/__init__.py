"""Vendors' words: one folder per vendor, with its YAML, notes, advice and hand-over.

`table` has the dialects a project may speak, `tools` the closed tools that take a hand-over, and
`advice` the wording of hints. `openexplorer` is what hb_mapper and hb_compile share. The room
refuses to know how a graph is quantized, and what a chip can do.
"""
