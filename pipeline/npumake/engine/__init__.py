"""How a graph is run: `ort` is onnxruntime, fast floats; `reference` is exact integers, the judge.

`lower` turns a quantized graph, whose Q/DQ `grids` reads, into the integer program that `reference`
executes and a bundle holds; `watching` hands out what a float graph makes on the way, `legs` runs
only what lies behind a tensor that changes. The room refuses to know where a graph comes from or
what its numbers are for.
"""
