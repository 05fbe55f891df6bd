"""The colours of a chip whose vendor's tool has gains of its own."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.borders.chroma import BT601, ChromaGains, with_chroma_gains
from npumake.borders.images import mark_images
from npumake.borders.preprocess import put_in_front
from npumake.engine.ort import OrtSession
from npumake.graph import Graph, array, parse_text, shape
from npumake.project.feeding import LEGAL, feeding
from npumake.project.sections import Input
from npumake.quant.precision.form import in_form
from npumake.targets.reader import read_target

GAINS = ChromaGains(1.7722, 1.4017)
LUMA = (0.299, 0.587, 0.114)
NORM = {"mean": (1.0, 2.0, 3.0), "scale": (0.5, 0.25, 2.0)}
PICTURES = [
    (trained, fed, layout)
    for trained in ("rgb", "bgr", "yuv444")
    for fed in LEGAL[trained]
    for layout in ("NCHW", "NHWC")
]


def fed_graph(trained: str, fed: str, layout: str, *, video: bool = False) -> Graph:
    dims = "1,3,2,2" if layout == "NCHW" else "1,2,2,3"
    graph = parse_text(f"agraph (float[{dims}] x) => (float[{dims}] y) {{ y = Identity(x) }}")
    (value,) = graph.inputs
    given = Input(
        type=trained,
        fed_type=fed,
        layout=layout,
        color_range="video" if video else "full",
        **NORM,
    )
    put_in_front(graph, value, feeding("x", given, shape(value)), given.mean, given.scale)
    mark_images(graph, ["x"])
    return graph.with_shapes()


def colours(graph: Graph, yuv: tuple[float, float, float], trained: str) -> np.ndarray:
    """(r, g, b) in codes."""
    (value,) = graph.inputs
    fed = np.zeros(shape(value), np.float32)
    axis = 1 if fed.shape[1] == 3 else 3
    fed += np.reshape(np.float32(yuv) - 128, [3 if index == axis else 1 for index in range(4)])
    (made,) = OrtSession(graph.to_bytes()).run(None, {"x": fed})
    made = np.moveaxis(made, axis, 3)[0, 0, 0] / NORM["scale"] + NORM["mean"]
    return made if trained == "rgb" else made[::-1]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("trained", ["rgb", "bgr"])
@pytest.mark.parametrize("fed", ["nv12", "yuv444"])
def test_one_code_of_u_and_of_v_adds_the_vendors_gain(fed, trained, layout):
    graph = fed_graph(trained, fed, layout)
    assert with_chroma_gains(graph, GAINS) == 1
    gray, blue, red = (
        colours(graph, yuv, trained) for yuv in ((90, 128, 128), (90, 129, 128), (90, 128, 129))
    )
    np.testing.assert_allclose(gray, 90, atol=1e-3)
    np.testing.assert_allclose((blue - gray)[[0, 2]], (0, GAINS.u), atol=1e-4)
    np.testing.assert_allclose((red - gray)[[0, 2]], (GAINS.v, 0), atol=1e-4)
    assert (blue - gray) @ LUMA == pytest.approx(0, abs=1e-4)  # green makes up for both
    assert (red - gray) @ LUMA == pytest.approx(0, abs=1e-4)


def weights(graph: Graph) -> np.ndarray:
    (conv,) = graph.nodes("Conv")
    return array(conv.inputs[1])[..., 0, 0]


def test_the_gains_of_video_range_grow_alike():
    graph = fed_graph("rgb", "nv12", "NCHW", video=True)
    before = weights(graph)
    with_chroma_gains(graph, GAINS)
    np.testing.assert_allclose(weights(graph), before * np.divide((1, *GAINS), (1, *BT601)), 1e-6)


@pytest.mark.parametrize(("trained", "fed", "layout"), PICTURES)
def test_a_picture_that_is_not_converted_stays(trained, fed, layout):
    graph = fed_graph(trained, fed, layout)
    before = graph.to_bytes()
    converts = fed in ("nv12", "yuv444") and trained != "yuv444"
    assert with_chroma_gains(graph, GAINS) == converts
    assert (graph.to_bytes() == before) is not converts


def test_the_gains_of_bt601_change_no_number():
    graph = fed_graph("rgb", "nv12", "NCHW")
    before = weights(graph)
    with_chroma_gains(graph, BT601)
    np.testing.assert_array_equal(weights(graph), before)


@pytest.mark.parametrize("name", ["rdk-x3", "rdk-ultra", "rdk-x5"])
def test_chips_of_hb_mapper_have_the_gains_of_its_logs(name):
    graph = in_form(fed_graph("rgb", "nv12", "NCHW"), read_target(name))
    largest = np.abs(weights(graph)).max(1) / np.array(NORM["scale"]) / 255
    np.testing.assert_allclose(largest, (0.005497, 0.003922, 0.00695), atol=5e-7)
