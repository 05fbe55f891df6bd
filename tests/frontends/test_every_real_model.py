"""Every real model computes here what its own runtime computes: as it is imported, and optimized.

`.onnx` against onnxruntime, `.tflite` against its interpreter, `.pb` against TensorFlow, a Caffe
network against its ONNX twin; test_caffe_real_models.py computes others layer by layer, and
test_tflite_models.py has those that are quantized. The models lie beside the repository, not in
it; where they or the runtime are absent this is skipped.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
import pytest

from frontends.nets import Beside
from frontends.test_tensorflow import IN_TENSORFLOW
from frontends.test_tflite_models import QUANTIZED, interpreted
from npumake.engine.ort import OrtSession
from npumake.frontends import FRONTENDS, read_model
from npumake.graph import Graph, dtype, open_dimensions, shape, upgraded
from npumake.kernels.measure import cosine
from npumake.passes import optimized
from passes.test_real_models import SHAPES
from workspaces import shared_data

Arrays = list[np.ndarray]
FILES = sorted(
    file
    for suffix in FRONTENDS
    for file in (shared_data() / "models").rglob(f"*{suffix}")
    if file not in QUANTIZED
)
SIZES = {"ESPCN_x2": {"IteratorGetNext": (1, 24, 32, 1)}} | SHAPES
LEAST = 0.99999
# Weights of 8 bits: the interpreter rounds activations too, by ranges measured anew each time.
ROUNDED = {"kws_tiny_float": 0.9999}
TWINS = {"caffe_ultraface_slim320": "ultraface_slim320_rawhead.onnx"}
SAMPLE_RATE = 16000  # the only number among the inputs that is not just any number

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES, reason="shared/data/models is not here"),
]


@cache
def graphs(file: Path) -> tuple[Graph, Graph]:
    """As imported, its shapes fixed, and optimized."""
    held = [
        Beside(f.name, f.read_bytes()) for f in [file.with_suffix(".caffemodel")] if f.is_file()
    ]
    graph = read_model(file.read_bytes(), file.name, held)
    for value in graph.inputs:
        if open_dimensions(value):
            graph.set_input_shape(value, SIZES[file.stem][str(value.name)])
    return graph, optimized(upgraded(graph).with_shapes())


def feeds(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    drawn = {str(v.name): rng.normal(size=shape(v)).astype(dtype(v)) for v in graph.inputs}
    return drawn | ({"sr": np.array(SAMPLE_RATE)} if "sr" in drawn else {})


def by_onnxruntime(file: Path, fed: Mapping[str, np.ndarray], names: list[str]) -> Arrays:
    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    half = {given.name for given in session.get_inputs() if given.type == "tensor(float16)"}
    cast = {name: x.astype(np.float16) if name in half else x for name, x in fed.items()}
    return session.run(names, cast)


def by_interpreter(file: Path, fed: Mapping[str, np.ndarray], names: list[str]) -> Arrays:
    (x,) = fed.values()
    return [interpreted(file, x)[0]]


def by_twin(file: Path, fed: Mapping[str, np.ndarray], names: list[str]) -> Arrays:
    """No runtime that can be installed reads Caffe; without a twin, as it is imported."""
    if file.stem in TWINS:
        return by_onnxruntime(file.with_name(TWINS[file.stem]), fed, names)
    return OrtSession(graphs(file)[0].to_bytes()).run(names, fed)


def by_tensorflow(file: Path, fed: Mapping[str, np.ndarray], names: list[str]) -> Arrays:
    ((name, x),) = fed.items()
    with TemporaryDirectory() as folder:
        given, made = (str(Path(folder, each)) for each in ("x.npy", "y.npy"))
        np.save(given, x)
        command = [sys.executable, "-c", IN_TENSORFLOW, str(file), name, *names, given, made]
        subprocess.run(command, check=True, capture_output=True)
        return [np.load(made)]


RUNTIMES: Mapping[str, Callable[[Path, Mapping[str, np.ndarray], list[str]], Arrays]] = {
    ".onnx": by_onnxruntime,
    ".pb": by_tensorflow,
    ".prototxt": by_twin,
    ".tflite": by_interpreter,
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_real_model_computes_what_its_own_runtime_does(file: Path) -> None:
    if file.suffix == ".pb" and not (find_spec("tf2onnx") and find_spec("tensorflow")):
        pytest.skip("npumake[tensorflow] is not installed")
    imported, better = graphs(file)
    fed, names = feeds(imported), [str(value.name) for value in imported.outputs]
    wanted = RUNTIMES[file.suffix](file, fed, names)
    for graph in (imported, better):
        made = OrtSession(graph.to_bytes()).run(names, fed)
        assert [y.shape for y in made] == [y.shape for y in wanted]
        closest = min(cosine(a, b) for a, b in zip(wanted, made, strict=True))
        assert closest >= ROUNDED.get(file.stem, LEAST)
