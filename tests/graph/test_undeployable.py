"""A random model, one in training mode and one that makes text are refused at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from npumake import digest
from npumake.debug.model_check import prepared
from npumake.errors import GraphError
from npumake.frontends import read_model
from npumake.graph import Graph, parse_text
from npumake.project.files import SourceFile
from npumake.project.sections import Input, ModelSection
from npumake.stages.original_float import original_float

HEAD = '<ir_version: 8, opset_import: ["" : {opset}, "ai.onnx.ml" : 2]>\n'
RATIO = "r = Constant<value_float={ratio}>() t = Constant<value = bool {{{flag}}}>()"


def text(body: str, inputs: str = "", outputs: str = "float[1,3] y", opset: int = 17) -> str:
    head = HEAD.format(opset=opset)
    return f"{head}g (float[1,3] x{inputs}) => ({outputs}) {{ a = Relu(x) {body} }}"


def read(folder: Path, source: str, outputs: tuple[str, ...] = (), **inputs: Input) -> Graph:
    file = folder / "m.onnx"
    file.write_bytes(parse_text(source).to_bytes())
    sources = {"model.path": (SourceFile("m.onnx", str(file), digest.of_file(file)),)}
    return original_float(ModelSection("m.onnx", outputs=outputs), inputs, sources)


def refusal(folder: Path, source: str) -> GraphError:
    """The error of `original_float`, and the same one of `npumake check`."""
    with pytest.raises(GraphError) as caught:
        read(folder, source)
    with pytest.raises(GraphError) as checked:
        prepared(read_model((folder / "m.onnx").read_bytes(), "m.onnx"), is_onnx=True)
    assert (checked.value.what, checked.value.hint) == (caught.value.what, caught.value.hint)
    return caught.value


DRAWING = {
    "RandomNormalLike": "z = RandomNormalLike(a)",
    "RandomUniformLike": "z = RandomUniformLike<seed=3.0>(a)",
    "RandomNormal": "z = RandomNormal<shape=[1,3]>()",
    "RandomUniform": "z = RandomUniform<shape=[1,3], seed=1.0>()",
    "Bernoulli": "s = Sigmoid(a) z = Bernoulli(s)",
    "Multinomial": "m = Multinomial<sample_size=3>(a) z = Cast<to=1>(m)",
}


@pytest.mark.parametrize("op", DRAWING)
def test_random_numbers_are_refused(tmp_path, op):
    error = refusal(tmp_path, text(f"{DRAWING[op]} y = Add(a, z)"))
    assert error.what.startswith(f"{op} `")
    assert error.what.endswith("draws other numbers in every run")


def test_the_hint_is_to_feed_the_noise(tmp_path):
    assert len(read(tmp_path, text("y = Add(a, z)", ", float[1,3] z")).inputs) == 2


def test_noise_that_no_output_needs_is_no_error(tmp_path):
    source = text(
        "z = RandomNormalLike(a) b = Add(a, z) y = Tanh(a)", "", "float[1,3] y, float[1,3] b"
    )
    assert refusal(tmp_path, source).what.startswith("RandomNormalLike")
    assert read(tmp_path, source, ("y",)).nodes()


@pytest.mark.parametrize(
    ("ratio", "flag", "is_refused"), [(0.5, 1, 1), (0.1, 1, 1), (0.5, 0, 0), (0.0, 1, 0)]
)
def test_a_dropout_that_drops_is_refused(tmp_path, ratio, flag, is_refused):
    source = text(f"{RATIO.format(ratio=ratio, flag=flag)} y = Dropout(a, r, t)")
    if is_refused:
        error = refusal(tmp_path, source)
        assert "is in training mode" in error.what
        assert "model.eval()" in error.hint
    else:
        assert read(tmp_path, source).nodes()


def test_a_flag_that_is_an_input_is_frozen_by_the_hint(tmp_path):
    source = text("r = Constant<value_float=0.5>() y = Dropout(a, r, t)", ", bool t")
    assert refusal(tmp_path, source).hint == "set  inputs: {t: {value: false}}"
    assert [str(v.name) for v in read(tmp_path, source, t=Input(value=False)).inputs] == ["x"]


LABELS = 'LabelEncoder<keys_int64s=[0,1,2], values_strings=["a","b","c"]>'


def labels(outputs: str) -> str:
    body = f"p = Softmax(a) k = ArgMax<axis=1, keepdims=0>(p) y = ai.onnx.ml.{LABELS}(k)"
    return text(body, "", outputs)


@pytest.mark.parametrize(
    ("outputs", "kept"),
    [("string[1] y", "k"), ("float[1,3] p, string[1] y", "p"), ("int64[1] k, string[1] y", "k")],
)
def test_text_is_refused_with_the_outputs_that_work(tmp_path, outputs, kept):
    error = refusal(tmp_path, labels(outputs))
    assert "makes text, `y`" in error.what
    assert error.hint == f"set  model: {{outputs: [{kept}]}}"
    graph = read(tmp_path, labels(outputs), (kept,))
    assert [str(value.name) for value in graph.outputs] == [kept]


def test_a_branch_that_draws_is_refused(tmp_path):
    branches = (
        "c = ReduceSum<keepdims=0>(a) k = Constant<value_float=1.0>() q = Greater(c, k) "
        "y = If<then_branch = th () => (float[1,3] u) { u = RandomNormalLike(a) }, "
        "else_branch = el () => (float[1,3] v) { v = Identity(a) }>(q)"
    )
    assert refusal(tmp_path, text(branches)).what.startswith("RandomNormalLike")
