"""The quantized ONNX file after onnxruntime's optimization: integer kernels for float nodes between
Q and DQ, folded constants, and fusions without processor-specific layouts.

All machines of one architecture get the same bytes, and any onnxruntime loads them without further
optimization.
"""

from __future__ import annotations

from npumake.engine.ort import optimized_by_onnxruntime
from npumake.graph import Graph, parse


def onnx_file(quantized: Graph, name: str) -> bytes:
    """Raises GraphError for a graph that onnxruntime refuses, e.g. with custom operators."""
    graph = parse(optimized_by_onnxruntime(quantized.to_bytes()), name)
    imports = graph.model.opset_imports
    used = {"", *(node.domain for node in graph.model.graph.all_nodes())}
    for domain in imports.keys() - used:  # onnxruntime imports every domain it knows
        del imports[domain]
    return graph.to_bytes()
