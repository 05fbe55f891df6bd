"""Frozen TensorFlow graphs: their interface is read here, the rest is the converter's."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.frontends import read_model
from npumake.frontends.tensorflow.graphdef import read_graphdef
from npumake.graph import open_dimensions
from npumake.make.programs import converters
from workspaces import shared_data

INSTALLED = bool(find_spec("tf2onnx") and find_spec("tensorflow"))
needs_converter = pytest.mark.skipif(not INSTALLED, reason="npumake[tensorflow] is not installed")
without_converter = pytest.mark.skipif(INSTALLED, reason="npumake[tensorflow] is installed")

# file, its one input and output, the shape it is fed
REAL = [
    ("superres/ESPCN_x2.pb", "IteratorGetNext", "NCHW_output", (1, 24, 32, 1)),
    ("audio/kws_arm_DS_CNN_S.pb", "Mfcc", "labels_softmax", (1, 49, 10)),
]
IN_TENSORFLOW = """
import sys
import numpy as np
import tensorflow as tf
file, fed, made, inputs, out = sys.argv[1:]
definition = tf.compat.v1.GraphDef.FromString(open(file, "rb").read())
tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32, np.load(inputs).shape, "npumake_fed")
(y,) = tf.import_graph_def(definition, {fed + ":0": x}, [made + ":0"])
np.save(out, tf.compat.v1.Session().run(y, {x: np.load(inputs)}))
"""


def field(number: int, content: bytes | str) -> bytes:
    """A length-delimited field on the wire, shorter than 128 bytes."""
    content = content.encode() if isinstance(content, str) else content
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def node(name: str, op: str, *inputs: str) -> bytes:
    return field(1, field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs))


X, Y = node("x", "Placeholder"), node("y", "Relu", "x:0")


def real(file: str) -> Path:
    path = shared_data() / "models" / file
    if not path.is_file():
        pytest.skip("shared/data is not here")
    return path


def test_placeholders_are_inputs_and_what_nobody_reads_is_an_output():
    graph = read_graphdef(X + node("w", "Const") + node("m", "Mul", "x", "w") + Y, "m.pb")
    assert (graph.inputs, graph.outputs) == (("x",), ("m", "y"))


def test_a_model_begins_behind_what_only_a_host_computes():
    sound = (
        node("wav", "Placeholder") + node("d", "DecodeWav", "wav") + node("m", "Mfcc", "d", "d:1")
    )
    graph = read_graphdef(sound + node("y", "Relu", "m"), "m.pb")
    assert (graph.inputs, graph.outputs) == (("m",), ("y",))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (X + Y[:-1], "damaged"),
        (b"\x08\x01" + field(2, "a SavedModel's graph"), "not a frozen TensorFlow graph"),
        (X + node("v", "VariableV2") + node("y", "Add", "x", "v"), "`v` is a variable"),
        (node("y", "Relu", "x"), "reads a node that does not exist"),
        (node("y", "Relu", "z") + node("z", "Relu", "y"), "no input or no output"),
        (node("c", "Const") + node("y", "Relu", "c"), "no input or no output"),
        (node("--output=a", "Placeholder") + node("y", "Relu", "--output=a"), "not a frozen"),
        (node("a,b", "Placeholder") + node("y", "Relu", "a,b"), "not a frozen"),
    ],
)
def test_a_file_that_is_no_frozen_graph_is_refused(data, what):
    with pytest.raises(GraphError, match=what) as caught:
        read_graphdef(data, "m.pb")
    assert caught.value.where == "m.pb"


@without_converter
def test_without_the_converter_the_error_says_how_to_install_it():
    with pytest.raises(GraphError, match="converter, which is not installed") as caught:
        read_model(X + Y, "m.pb")
    assert "pip install 'npumake[tensorflow]'" in caught.value.hint
    assert converters(["m.pb"]) == {}


@pytest.mark.parametrize(("file", "fed", "made", "shape"), REAL)
def test_the_interface_of_a_real_model_is_read(file, fed, made, shape):
    graph = read_graphdef(real(file).read_bytes(), file)
    assert (graph.inputs, graph.outputs) == ((fed,), (made,))


@needs_converter
def test_the_converters_versions_are_in_the_key_of_a_tensorflow_model():
    assert {"tf2onnx"} < set(converters(["m.PB", "a.npy"]))
    assert converters(["m.onnx"]) == {}


@needs_converter
@pytest.mark.slow
def test_what_the_converter_refuses_is_one_error():
    with pytest.raises(GraphError, match="tf2onnx cannot convert the model"):
        read_model(X + node("y", "NoSuchOperator", "x"), "m.pb")


@needs_converter
@pytest.mark.slow
@pytest.mark.parametrize(("file", "fed", "made", "shape"), REAL)
def test_a_real_model_computes_what_tensorflow_does(file, fed, made, shape, tmp_path):
    graph = read_model(real(file).read_bytes(), file)
    assert ([v.name for v in graph.inputs], [v.name for v in graph.outputs]) == ([fed], [made])
    if open_dimensions(graph.inputs[0]):
        graph.set_input_shape(graph.inputs[0], shape)
    x = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    files = [str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    command = [sys.executable, "-c", IN_TENSORFLOW, str(real(file)), fed, made, *files]
    subprocess.run(command, check=True, capture_output=True)
    (ours,) = OrtSession(graph.to_bytes()).run(None, {fed: x})
    theirs = np.load(tmp_path / "y.npy")
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    again = read_model(real(file).read_bytes(), file)
    if open_dimensions(again.inputs[0]):
        again.set_input_shape(again.inputs[0], shape)
    assert again.to_bytes() == graph.to_bytes()
