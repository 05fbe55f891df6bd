"""TensorFlow: converts a frozen GraphDef (`.pb`) to ONNX, by tf2onnx in a separate process.

`graphdef` reads the interface without TensorFlow; `convert` runs the converter of
`npumake[tensorflow]`.
"""

from npumake.frontends.tensorflow.convert import converted
from npumake.frontends.tensorflow.graphdef import read_graphdef
from npumake.graph import Graph, parse, renumber


def read_tensorflow(data: bytes, name: str) -> Graph:
    """The graph of a frozen TensorFlow file called `name`. Inputs and outputs have the names of the
    nodes that produce them. Raises GraphError."""
    graph = parse(converted(read_graphdef(data, name), name), name)
    renumber(graph)  # tf2onnx numbers names differently every time
    return graph
