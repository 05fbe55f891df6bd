"""Model files become graphs: one reader per format, chosen by suffix.

A reader takes the bytes of a stranger's file and gives a checked Graph, or one GraphError. It
refuses to know the project: shapes, preprocessing and opset are settled by `original_float`.
"""

from collections.abc import Callable

from pipeline.errors import GraphError
from pipeline.frontends.caffe import read_caffe
from pipeline.frontends.tflite import parse_tflite
from pipeline.graph import Graph, parse

FRONTENDS: dict[str, Callable[[bytes, str], Graph]] = {
    ".onnx": parse,
    ".tflite": parse_tflite,
}

# Formats of two files: the reader is given the weights as (content, name) too.
WITH_WEIGHTS: dict[str, Callable[[bytes, str, tuple[bytes, str]], Graph]] = {
    ".prototxt": read_caffe
}


def read_model(data: bytes, name: str, weights: tuple[bytes, str] | None = None) -> Graph:
    """The graph in a model file called `name`, and in the file of its `weights` where the format
    has one; each node with its origin. Raises GraphError."""
    graph = _read(data, name, weights)
    graph.name_origins()
    return graph


def suffix_of(name: str) -> str:
    """`.onnx` of `Net.v2.ONNX`; empty without a dot."""
    return name[name.rfind(".") :].lower() if "." in name else ""


def _read(data: bytes, name: str, weights: tuple[bytes, str] | None) -> Graph:
    suffix = suffix_of(name)
    if suffix in WITH_WEIGHTS:
        if weights is None:
            raise GraphError("the weights of the network are in a second file", name)
        return WITH_WEIGHTS[suffix](data, name, weights)
    if suffix not in FRONTENDS:
        known = ", ".join(sorted([*FRONTENDS, *WITH_WEIGHTS]))
        raise GraphError(f"no frontend reads a `{suffix or name}` file", name, f"known: {known}")
    return FRONTENDS[suffix](data, name)
