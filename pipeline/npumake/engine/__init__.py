"""Runs a graph: `ort` is onnxruntime (fast floats), `reference` computes exact integers.

`lower` turns a Q/DQ graph into the integer program that `reference` executes and a bundle stores.
`grids` reads the Q/DQ nodes. `observed_session` exposes inner tensors of a float graph.
`partial` runs parts of a graph: step by step, or only what is downstream of a change. This room
does not know where a graph comes from or what its results are used for.
"""
