"""dialects: one folder per vendor, with its YAML keys, notes, advice and hand-over.

`table` lists the dialects of a project, `tools` the closed tools that take a hand-over, and
`advice` the wording of hints. `openexplorer` holds the keys that hb_mapper and hb_compile share.
Nothing here knows how a graph is quantized or what a chip can do.
"""
