"""Model files become graphs: one reader per format, chosen by suffix.

A reader takes the bytes of a stranger's file and gives a checked Graph, or one GraphError. It
refuses to know the project: shapes, preprocessing and opset are settled by `original_float`.
"""

from collections.abc import Callable, Mapping, Sequence

from npumake.errors import GraphError
from npumake.frontends.caffe import read_caffe
from npumake.frontends.codes import in_qdq
from npumake.frontends.horizon import in_onnx
from npumake.frontends.model_file import Ends as Ends
from npumake.frontends.model_file import ModelFile
from npumake.frontends.tensorflow import read_tensorflow
from npumake.frontends.tflite import parse_tflite
from npumake.graph import Beside, Graph, in_single, parse

FRONTENDS: dict[str, Callable[[ModelFile], Graph]] = {
    ".onnx": lambda file: parse(file.data, file.name, file.weights),
    ".pb": lambda file: read_tensorflow(file.data, file.name),
    ".prototxt": lambda file: read_caffe(file.data, file.name, file.weights, file.shapes),
    ".tflite": lambda file: parse_tflite(file.data, file.name, file.ends),
}
# Weights may lie in files of their own.
WITH_WEIGHTS = frozenset({".onnx", ".prototxt"})
# Every shape follows from those of the inputs, which may be others than the file says.
RESHAPED = frozenset({".prototxt"})
# Pictures have their channels last.
CHANNELS_LAST = frozenset({".pb", ".tflite"})
EVERYTHING = Ends()


def read_model(
    data: bytes,
    name: str,
    weights: Sequence[Beside] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    ends: Ends = EVERYTHING,
) -> Graph:
    """The graph in a model file called `name`, and in the files of its `weights` where the format
    has them; each node with its origin, what is quantized in Q/DQ, half precision in single.

    `shapes` replace those of inputs, in a format that is RESHAPED. `ends` are settled here in a
    format whose tensors the graph does not have as they are. Raises GraphError.
    """
    suffix = suffix_of(name)
    if suffix not in FRONTENDS:
        suffixes = ", ".join(sorted(FRONTENDS))
        raise GraphError(f"no frontend reads a `{suffix or name}` file", name, f"known: {suffixes}")
    graph = FRONTENDS[suffix](ModelFile(data, name, weights, shapes or {}, ends))
    in_onnx(graph)
    graph = in_qdq(graph, name)
    in_single(graph)
    graph.name_origins()
    return graph


def suffix_of(name: str) -> str:
    """`.onnx` of `Net.v2.ONNX`; empty without a dot."""
    return name[name.rfind(".") :].lower() if "." in name else ""
