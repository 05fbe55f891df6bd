"""Stage files in the documented form give what the stage gives, and are the stage again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from npumake.borders.documented import NOTE, as_built, as_codes, as_trained, as_turned
from npumake.borders.images import mark_images
from npumake.engine.ort import OrtSession
from npumake.graph import Graph, parse_text, shape

LAYOUTS = ("NCHW", "NHWC")
PAIRS = list(itertools.product(LAYOUTS, LAYOUTS))
BODIES = {
    "NCHW": "t = Identity(x)",
    "NHWC": "t = Transpose <perm=[0,3,1,2]> (x)",
}
SIZES = {"NCHW": (1, 3, 4, 6), "NHWC": (1, 4, 6, 3)}
TURNS = {("NHWC", "NCHW"): (0, 3, 1, 2), ("NCHW", "NHWC"): (0, 2, 3, 1)}


def graph(fed: str, turn: bool = True) -> Graph:
    """A picture `x`, fed in a layout, and a feature map `f`."""
    body = BODIES[fed] if turn else "t = Identity(x)"
    sizes = ",".join(map(str, SIZES[fed]))
    text = f"net (float[{sizes}] x, float[1,2] f) => (float[] y, float[] g)"
    nodes = f"{{ {body}  c = Mul(t, t)  y = Relu(c)  g = Relu(f) }}"
    found = parse_text(f'<ir_version: 8, opset_import: ["" : 13]>\n{text} {nodes}').with_shapes()
    mark_images(found, ["x"])
    return found


def answers(found: Graph, x: np.ndarray) -> list[np.ndarray]:
    return OrtSession(found.to_bytes()).run(None, {"x": x, "f": np.ones((1, 2), np.float32)})


def turned(x: np.ndarray, layouts: tuple[str, str]) -> np.ndarray:
    order = TURNS.get(layouts)
    return np.ascontiguousarray(x if order is None else x.transpose(order))


@pytest.mark.parametrize(("fed", "trained"), PAIRS)
@pytest.mark.parametrize("turn", [True, False])
@pytest.mark.parametrize("form", [as_trained, as_turned])
def test_a_float_stage_is_fed_as_trained(form, fed: str, trained: str, turn: bool):
    stage = graph(fed, turn)
    pixels = np.random.default_rng(0).integers(-128, 128, SIZES[fed]).astype(np.float32)
    made = form(stage, {"x": (fed, trained)})
    assert shape(made.inputs[0]) == SIZES[trained]
    expected = answers(stage, pixels)
    for one, other in zip(expected, answers(made, turned(pixels, (fed, trained))), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("fed", "wanted"), PAIRS)
def test_a_picture_of_the_quantized_stage_is_codes(fed: str, wanted: str):
    stage = graph(fed)
    pixels = np.random.default_rng(0).integers(-128, 128, SIZES[fed]).astype(np.int8)
    made = as_codes(stage, {"x": (fed, wanted)})
    assert (shape(made.inputs[0]), made.inputs[0].dtype.name) == (SIZES[wanted], "INT8")
    assert made.inputs[1].dtype.name == "FLOAT"
    expected = answers(stage, pixels.astype(np.float32))
    for one, other in zip(expected, answers(made, turned(pixels, (fed, wanted))), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("layouts", PAIRS)
@pytest.mark.parametrize("form", [as_turned, as_codes])
def test_a_documented_form_is_the_stage_again(form, layouts: tuple[str, str]):
    stage = graph(layouts[0])
    again = as_built(Graph.from_bytes(form(stage, {"x": layouts}).to_bytes()))
    assert [(v.name, shape(v)) for v in again.inputs] == [(v.name, shape(v)) for v in stage.inputs]
    nodes = [(node.name, node.op_type) for node in stage.nodes()]
    assert [(node.name, node.op_type) for node in again.nodes()] == nodes


def test_a_graph_without_pictures_is_as_it_was():
    stage = graph("NCHW")
    mark_images(stage, [])
    made = as_codes(stage, {"x": ("NCHW", "NHWC")})
    assert NOTE not in made.metadata
    assert as_built(made) is made
