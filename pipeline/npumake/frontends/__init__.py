"""Reads model files into graphs: one reader per format, chosen by suffix.

A reader returns a checked Graph from an untrusted file, or raises one GraphError. It does not know
the project: `original_float` settles shapes, preprocessing and opset.
"""

from collections.abc import Callable, Mapping, Sequence

from npumake import plugins
from npumake.errors import GraphError
from npumake.frontends.caffe import read_caffe
from npumake.frontends.codes import in_qdq
from npumake.frontends.horizon import in_onnx
from npumake.frontends.model_file import Ends as Ends
from npumake.frontends.model_file import ModelFile
from npumake.frontends.tensorflow import read_tensorflow
from npumake.frontends.tflite import parse_tflite
from npumake.graph import Beside, Graph, in_single, parse

Reader = Callable[[ModelFile], Graph]
FRONTENDS: dict[str, Reader] = {
    ".onnx": lambda file: parse(file.data, file.name, file.weights),
    ".pb": lambda file: read_tensorflow(file.data, file.name),
    ".prototxt": lambda file: read_caffe(file.data, file.name, file.weights, file.shapes),
    ".tflite": lambda file: parse_tflite(file.data, file.name, file.ends),
}
# Formats with weights in separate files.
WITH_WEIGHTS = frozenset({".onnx", ".prototxt"})
# Formats whose shapes all follow from the inputs', which the project may replace.
RESHAPED = frozenset({".prototxt"})
# Formats with channels-last images.
CHANNELS_LAST = frozenset({".pb", ".tflite"})
WHOLE_MODEL = Ends()


def read_model(
    data: bytes,
    name: str,
    weights: Sequence[Beside] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    ends: Ends = WHOLE_MODEL,
) -> Graph:
    """The graph of a model file called `name`, with the files of its `weights` for formats that
    have them. Every node has its origin, quantized models are in Q/DQ form, and half precision is
    float32.

    `shapes` replace input shapes, in a RESHAPED format. `ends` apply here only in a format whose
    tensors do not all appear in the graph. Raises GraphError.
    """
    graph = _reader_of(name)(ModelFile(data, name, weights, shapes or {}, ends))
    in_onnx(graph)
    graph = in_qdq(graph, name)
    in_single(graph)
    graph.name_origins()
    return graph


def suffix_of(name: str) -> str:
    """`.onnx` for `Net.v2.ONNX`; empty without a dot."""
    return name[name.rfind(".") :].lower() if "." in name else ""


def _reader_of(name: str) -> Reader:
    """Ours for a suffix of ours, else that of an installed package. Raises PipelineError."""
    suffix = suffix_of(name)
    if suffix in FRONTENDS:
        return FRONTENDS[suffix]
    if plugin := plugins.plugin(plugins.FRONTENDS, suffix.removeprefix(".")):
        reader: Reader = plugin.load()
        return reader
    suffixes = sorted(
        {*FRONTENDS, *(f".{extension}" for extension in plugins.plugin_names(plugins.FRONTENDS))}
    )
    hint = f"known: {', '.join(suffixes)}"
    raise GraphError(f"no frontend reads a `{suffix or name}` file", name, hint)
