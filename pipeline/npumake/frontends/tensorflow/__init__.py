"""TensorFlow: a frozen GraphDef (`.pb`) becomes ONNX, by tf2onnx in a process of its own.

`graphdef` reads what the file says of itself, which needs no TensorFlow; `convert` calls the
converter, which comes with `npumake[tensorflow]`.
"""

from npumake.frontends.tensorflow.convert import converted
from npumake.frontends.tensorflow.graphdef import read_graphdef
from npumake.graph import Graph, parse, renumber


def read_tensorflow(data: bytes, name: str) -> Graph:
    """The graph in a frozen TensorFlow file called `name`. Its inputs and outputs are called like
    the nodes that make them. Raises GraphError."""
    graph = parse(converted(read_graphdef(data, name), name), name)
    renumber(graph)  # tf2onnx gives other numbers every time
    return graph
