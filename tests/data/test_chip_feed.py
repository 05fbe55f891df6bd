"""Fed form: a sample as trained, made what the chip is fed; the graph makes it the sample again."""

import cv2
import numpy as np
import pytest

from npumake.borders.preprocess import put_in_front
from npumake.data.chip_feed import fed_form
from npumake.engine.ort import OrtSession
from npumake.graph import dtype, parse_text, shape
from npumake.project.feeding import LEGAL, PICTURES, feeding
from npumake.project.sections import CameraPreprocess, Input

rng = np.random.default_rng(2)
SIDE = 8
# Blocks of 2 x 2, which chroma of half size keeps; nothing that YUV codes would clip.
BLOCKS = rng.integers(80, 170, (1, 3, SIDE // 2, SIDE // 2)).repeat(2, 2).repeat(2, 3)
CASES = [
    Input(type=trained, fed_type=fed, layout=layout, fed_layout=fed_layout)
    for trained in ("rgb", "bgr", "yuv444")
    for fed in LEGAL[trained]
    for layout, fed_layout in (("NCHW", "NHWC"), ("NHWC", "NCHW"), ("NHWC", "NHWC"))
] + [
    Input(type="bgr", preprocess=CameraPreprocess(kind, size, crop), color_range=span)
    for kind, (trained, _) in PICTURES.items()
    if "bgr" in trained
    for size, crop in ((None, False), ((16, 24), False), ((16, 24), True))
    for span in (("full", "video") if kind[0] in "yn" else ("full",))
]


@pytest.mark.parametrize("given", CASES, ids=str)
def test_the_graph_gives_the_sample_back_to_rounding_of_its_codes(given):
    text = ",".join({"N": "1", "C": "3"}.get(letter, str(SIDE)) for letter in given.layout)
    graph = parse_text(f"agraph (float[{text}] x) => (float[{text}] y) {{ y = Identity(x) }}")
    picture = BLOCKS if given.layout == "NCHW" else BLOCKS.transpose(0, 2, 3, 1)
    form = feeding("x", given, shape(graph.inputs[0]))
    put_in_front(graph, graph.inputs[0], form, 0.0, 1.0)
    graph = graph.with_shapes()
    feed = fed_form((picture - 128).astype(np.float32), form, "x")
    assert list(feed) == [str(value.name) for value in graph.inputs]
    for value in graph.inputs:
        fed = feed[str(value.name)]
        assert (fed.dtype, fed.shape) == (dtype(value), shape(value))
        assert fed.dtype == np.int32 or (np.rint(fed) == fed).all()
    (made,) = OrtSession(graph.to_bytes()).run(None, feed)
    # Resizing smooths the edges of the blocks; elsewhere a code of U, rounded, is 1.8 of blue.
    error = np.abs(made - picture)
    tolerance = 2.1 if given.color_range == "video" else 1.5
    assert (np.median(error) if form.size else error.max()) <= tolerance


def test_full_range_planes_are_what_opencv_computes():
    picture = rng.integers(0, 256, (1, 3, SIDE, SIDE))
    form = feeding("x", Input(preprocess=CameraPreprocess("yuv444")), picture.shape)
    feed = fed_form((picture - 128).astype(np.float32), form, "x")
    wanted = cv2.cvtColor(picture[0].transpose(1, 2, 0).astype(np.uint8), cv2.COLOR_RGB2YCrCb)
    planes = [feed[name][0, ..., 0] + 128 for name in ("x_y8", "x_v8", "x_u8")]
    assert np.abs(np.stack(planes, axis=2) - wanted).max() <= 1


def test_nv12_as_one_plane_has_one_chroma_value_per_block():
    picture = rng.integers(0, 256, (1, 3, SIDE, SIDE))
    form = feeding("x", Input(type="rgb", fed_type="nv12"), picture.shape)
    chroma = fed_form((picture - 128).astype(np.float32), form, "x")["x"][0, 1:]
    np.testing.assert_array_equal(chroma, chroma[:, ::2, ::2].repeat(2, 1).repeat(2, 2))


def test_what_is_fed_as_trained_is_not_touched():
    sample = rng.normal(size=(1, 3, 4, 4)).astype(np.float32)
    for given in (Input(), Input(offset=128), Input(type="rgb")):
        assert fed_form(sample, feeding("x", given, sample.shape), "x")["x"] is sample


def test_a_feature_map_is_only_laid_out():
    sample = rng.normal(size=(1, 3, 4, 5)).astype(np.float32)
    form = feeding("x", Input(fed_layout="NHWC"), sample.shape)
    np.testing.assert_array_equal(fed_form(sample, form, "x")["x"], sample.transpose(0, 2, 3, 1))
