"""The quantized file itself, optimised: onnxruntime's integer kernels in the place of float nodes
between Q and DQ, constants folded, and what is fused that no layout of a processor is needed for.

The same bytes on every machine of an architecture; any onnxruntime loads them at once.
"""

from __future__ import annotations

from npumake.engine.ort import optimized_by_onnxruntime
from npumake.graph import Graph, parse


def onnx_file(quantized: Graph, name: str) -> bytes:
    """Raises GraphError for what onnxruntime refuses, an operator of the project's own too."""
    graph = parse(optimized_by_onnxruntime(quantized.to_bytes()), name)
    imports = graph.model.opset_imports
    used = {"", *(node.domain for node in graph.model.graph.all_nodes())}
    for domain in imports.keys() - used:  # onnxruntime names every domain it knows
        del imports[domain]
    return graph.to_bytes()
