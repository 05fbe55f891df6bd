"""An input with a `value` is a constant: what it decides is known, and no sample feeds it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npumake import digest
from npumake.engine.ort import OrtSession
from npumake.errors import ProjectError, Route
from npumake.graph import Graph, deciding_inputs, parse_text
from npumake.project.files import SourceFile
from npumake.project.sections import FilePath, Files, Input, ModelSection
from npumake.stages.optimized_float import optimized_float
from npumake.stages.original_float import original_float
from npumake.stages.samples import samples

BRANCH = """agraph (float[1,4] x, int64 rate, bool is_loud) => (float[1,4] y)
    <int64 wide = {16000}> {
    at = Equal(rate, wide)
    y = If(at) <
        then_branch = g () => (float[1,4] a) { a = Relu(x) },
        else_branch = h () => (float[1,4] b) { r = Cast<to=1>(rate) b = Mul(x, r) }
    >
}"""
SIZED = """agraph (float[1,8] x, int64[2] size) => (float[?,?] y) { y = Reshape(x, size) }"""
TYPES = (
    "agraph ({dtype}[2,1] s, float[2,3] x) => (float[2,3] y) {{ f = Cast<to=1>(s) y = Mul(x, f) }}"
)


def built(text: str, tmp_path: Path, **inputs: Input) -> Graph:
    path = tmp_path / "m.onnx"
    path.write_bytes(parse_text(text).to_bytes())
    file = SourceFile("m.onnx", str(path), digest.of_file(path))
    return original_float(ModelSection(FilePath("m.onnx")), inputs, {"model.path": (file,)})


def ran(graph: Graph, **feeds: np.ndarray) -> np.ndarray:
    (y,) = OrtSession(graph.to_bytes()).run(None, feeds)
    return np.asarray(y)


def names(graph: Graph) -> list[str]:
    return [str(value.name) for value in graph.inputs]


@pytest.mark.parametrize("rate", [16000, 8000])
def test_it_decides_a_branch(tmp_path: Path, rate: int) -> None:
    x = np.array([[-1, 2, -3, 4]], np.float32)
    fixed = {"rate": Input(value=rate), "is_loud": Input(value=True)}
    graph = built(BRANCH, tmp_path, **fixed)
    small = optimized_float(graph)
    assert names(graph) == names(small) == ["x"]
    assert not list(small.nodes("If"))
    expected = np.maximum(x, 0) if rate == 16000 else x * rate
    for each in (graph, small):
        np.testing.assert_array_equal(ran(each, x=x), expected)


def test_it_decides_a_shape(tmp_path: Path) -> None:
    graph = optimized_float(built(SIZED, tmp_path, size=Input(value=(2.0, 4.0))))
    assert names(graph) == ["x"]
    assert ran(graph, x=np.ones((1, 8), np.float32)).shape == (2, 4)


@pytest.mark.parametrize("dtype", ["float", "float16", "double", "int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("value", [3, (3.0, 5.0)])
def test_every_type_takes_one_number_or_one_for_each(
    tmp_path: Path, dtype: str, value: float | tuple[float, ...]
) -> None:
    graph = built(TYPES.format(dtype=dtype), tmp_path, s=Input(value=value))
    column = np.broadcast_to(np.reshape(value, (-1, 1)), (2, 1))
    made = ran(graph, x=np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(made, column * np.ones((2, 3)))


@pytest.mark.parametrize(
    ("inputs", "route", "message"),
    [
        ({"s": Input(value=1.5)}, "inputs.s.value", "int8, .* cannot represent"),
        ({"s": Input(value=200)}, "inputs.s.value", "int8, .* cannot represent"),
        ({"s": Input(value=float("nan"))}, "inputs.s.value", "int8, .* cannot represent"),
        ({"s": Input(value=(1, 2, 3))}, "inputs.s.value", "3 numbers for input `s`, which has 2"),
        ({"s": Input(value=1, mean=3)}, "inputs.s.value", "other keys have no effect"),
        ({"@0": Input(value=1)}, "inputs.@0", "changes the numbers"),
        ({"*": Input(value=1)}, "inputs.*", "changes the numbers"),
        ({"s": Input(value=1), "@1": Input(mean=1)}, "inputs.@1", "changes the numbers"),
        ({"s": Input(value=1), "x": Input(value=1)}, "inputs.x.value", "last input"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_key(
    tmp_path: Path, inputs: dict[str, Input], route: str, message: str
) -> None:
    with pytest.raises(ProjectError, match=message) as caught:
        built(TYPES.format(dtype="int8"), tmp_path, **inputs)
    assert caught.value.where == Route(route)
    assert caught.value.hint


def test_an_open_dimension_needs_a_shape_too(tmp_path: Path) -> None:
    text = TYPES.format(dtype="int8").replace("[2,1]", "[N,1]")
    graph = built(text, tmp_path, s=Input(value=3, shape=(2, 1)))
    np.testing.assert_array_equal(ran(graph, x=np.ones((2, 3), np.float32)), np.full((2, 3), 3))


def test_samples_of_a_constant_are_refused(tmp_path: Path) -> None:
    inputs = {"s": Input(value=3)}
    graph = built(TYPES.format(dtype="int8"), tmp_path, **inputs)
    noise = Files(random=8)
    assert [*samples(graph, inputs, {"x": noise}, {}).read(0)] == ["x"]
    with pytest.raises(ProjectError, match="a constant by its `value`") as caught:
        samples(graph, inputs, {"x": noise, "s": noise}, {})
    assert caught.value.where == Route("data.s")


def test_only_settings_decide(tmp_path: Path) -> None:
    """The hint of an open shape names integers and booleans, not the inputs of numbers."""
    graph = built(SIZED, tmp_path)
    assert deciding_inputs(graph.outputs[0]) == ["size"]
