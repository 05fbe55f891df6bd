"""Model files become graphs: one reader per format, chosen by suffix.

A reader takes the bytes of a stranger's file and gives a checked Graph, or one GraphError. It
refuses to know the project: shapes, preprocessing and opset are settled by `original_float`.
"""

from collections.abc import Callable

from pipeline.errors import GraphError
from pipeline.frontends.tensorflow import read_tensorflow
from pipeline.graph import Graph, parse

FRONTENDS: dict[str, Callable[[bytes, str], Graph]] = {
    ".onnx": parse,
    ".pb": read_tensorflow,
}


def read_model(data: bytes, name: str) -> Graph:
    """The graph in a model file called `name`. Raises GraphError."""
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    if suffix not in FRONTENDS:
        known = ", ".join(sorted(FRONTENDS))
        raise GraphError(f"no frontend reads a `{suffix or name}` file", name, f"known: {known}")
    return FRONTENDS[suffix](data, name)
