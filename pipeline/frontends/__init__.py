"""Model files become graphs: one reader per format, chosen by suffix.

A reader takes the bytes of a stranger's file and gives a checked Graph, or one GraphError. It
refuses to know the project: shapes, preprocessing and opset are settled by `original_float`.
"""

from collections.abc import Callable, Sequence

from pipeline.errors import GraphError
from pipeline.frontends.caffe import read_caffe
from pipeline.frontends.tensorflow import read_tensorflow
from pipeline.frontends.tflite import parse_tflite
from pipeline.graph import Beside, Graph, in_single, parse

FRONTENDS: dict[str, Callable[[bytes, str], Graph]] = {
    ".pb": read_tensorflow,
    ".tflite": parse_tflite,
}

# Formats whose weights may lie in files of their own, which the reader is given too.
WITH_WEIGHTS: dict[str, Callable[[bytes, str, Sequence[Beside]], Graph]] = {
    ".onnx": parse,
    ".prototxt": read_caffe,
}


def read_model(data: bytes, name: str, weights: Sequence[Beside] = ()) -> Graph:
    """The graph in a model file called `name`, and in the files of its `weights` where the format
    has them; each node with its origin, what is of half precision in single. Raises GraphError."""
    graph = _read(data, name, weights)
    in_single(graph)
    graph.name_origins()
    return graph


def suffix_of(name: str) -> str:
    """`.onnx` of `Net.v2.ONNX`; empty without a dot."""
    return name[name.rfind(".") :].lower() if "." in name else ""


def _read(data: bytes, name: str, weights: Sequence[Beside]) -> Graph:
    suffix = suffix_of(name)
    if suffix in WITH_WEIGHTS:
        return WITH_WEIGHTS[suffix](data, name, weights)
    if suffix not in FRONTENDS:
        known = ", ".join(sorted({*FRONTENDS, *WITH_WEIGHTS}))
        raise GraphError(f"no frontend reads a `{suffix or name}` file", name, f"known: {known}")
    return FRONTENDS[suffix](data, name)
