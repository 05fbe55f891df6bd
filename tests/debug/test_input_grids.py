"""Samples are held to the grid that a quantized model brought for its input."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.debug.input_grids import input_grid_notes
from npumake.graph import Graph, parse_text

SCALE, ZERO = 1 / 255, -128  # reads 0..1


def model(front: str = "", tensor: str = "x") -> Graph:
    return parse_text(f"""agraph (float[1,3,4,4] x, float[1,2] other) => (float[1,3,4,4] y)
        <float s = {{{SCALE}}}, int8 z = {{{ZERO}}}, float k = {{{SCALE}}}> {{
        {front} q = QuantizeLinear({tensor}, s, z)  d = DequantizeLinear(q, s, z)
        r = Relu(d)  q_r = QuantizeLinear(r, s, z)  y = DequantizeLinear(q_r, s, z) }}""")


def samples(low: float, high: float, count: int = 4) -> Samples:
    rng = np.random.default_rng(0)
    values = rng.uniform(low, high, (count, 1, 3, 4, 4)).astype(np.float32)
    other = np.zeros((1, 2), np.float32)
    names = tuple(f"{index}.npy" for index in range(count))
    return Samples(names, lambda index: {"x": values[index], "other": other})


FRONT = model("p = Mul(x, k)", "p")


@pytest.mark.parametrize(
    ("graph", "low", "high"), [(model(), 0, 1), (model(), 0.3, 1.2), (FRONT, 0, 255)]
)
def test_samples_on_the_grid_are_not_noted(graph: Graph, low: float, high: float) -> None:
    assert input_grid_notes(graph, samples(low, high)) == ()


@pytest.mark.parametrize(
    ("graph", "low", "high", "what"),
    [
        (model(), 0, 255, "4 of 4 samples go beyond it"),
        (model(), -1, 1, "4 of 4 samples go beyond it"),
        (FRONT, 0, 1, "the samples only"),
        (model(), 0, 0.01, "the samples only"),
    ],
)
def test_samples_normalized_another_way_are_noted(graph, low, high, what) -> None:
    (note,) = input_grid_notes(graph, samples(low, high))
    assert "input `x`: the model's own grid reads 0..1, and" in note
    assert what in note
    assert note.endswith("check its `mean` and `scale`")


def test_a_grid_behind_a_layer_is_not_the_input_s() -> None:
    graph = model("p = Relu(x)", "p")
    assert input_grid_notes(graph, samples(0, 255)) == ()


def test_an_input_without_a_grid_and_a_model_without_samples_are_not_noted() -> None:
    plain = parse_text("agraph (float[1,4] x) => (float[1,4] y) { y = Relu(x) }")
    assert input_grid_notes(plain, samples(0, 255)) == ()
    assert input_grid_notes(model(), samples(0, 255, 0)) == ()
