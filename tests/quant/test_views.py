"""Views: a large tensor that cannot be negative is handed out as little, and known as well."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from npumake.errors import StageError
from npumake.graph import parse_text
from npumake.kernels.histogram import histogram
from npumake.quant.calibration.histogram_observer import EARLY_SAMPLES
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import merged_statistics
from npumake.quant.calibration.subsampling import (
    MIN_COUNTED,
    TensorSlice,
    counted_elements,
    slices_of,
)

SIZE = (1, 16, 97, 80)
GRAPH = parse_text(
    """a (float[1,16,97,80] x) => (float[] y, float[] z, float[] s) <float low = {-1}>
    { r = Relu(x)  y = Neg(r)  z = Clip(x, low)  p = MaxPool<kernel_shape=[60,60]>(x)
      q = Neg(p)  s = Relu(q) }"""
)


@pytest.fixture(scope="module")
def feeds():
    rng = np.random.default_rng(0)
    slope = np.linspace(0, 1, 80)  # so that it matters which columns are seen
    return [
        {"x": (rng.normal(size=SIZE) * slope).astype(np.float32)} for _ in range(EARLY_SAMPLES + 4)
    ]


def test_only_a_large_tensor_clamped_at_zero_is_handed_out_in_pieces():
    views = {name: slices_of(value) for name, value in GRAPH.values().items()}
    assert views["r"].pieces == tuple(
        TensorSlice((1, 16, *of), ("high",)) for of in [(1, 1), (33, 27)]
    )
    assert [name for name, view in views.items() if len(view.pieces) > 1] == ["r"]


@pytest.mark.parametrize(
    ("clamp", "floor"),
    [
        ("y = Relu(x)", 0),
        ("y = Clip(x, one, two)", 1),
        ("y = Clip(x, two, one)", 1),  # crossed bounds: all of it is the upper one
        ("y = Clip(x, two)", 2),
    ],
)
def test_what_a_clamp_keeps_from_being_negative_is_said_to_reach_down_to_it(clamp, floor):
    rng = np.random.default_rng(0)
    graph = parse_text(
        f"a (float[1,3,4,5] x) => (float[] y) <float one = {{1}}, float two = {{2}}> {{ {clamp} }}"
    )
    view = slices_of(graph.values()["y"])
    assert (view.pieces, view.floor) == ((TensorSlice((1, 3, 4, 5), ("high",)),), floor)
    found = observe(graph, [{"x": rng.normal(8, 1, (1, 3, 4, 5)).astype("f")} for _ in range(3)])
    assert found.tensors["y"].low == floor
    assert found.samples["y"].low.tolist() == [floor] * 3
    assert found.channels["y"].low.tolist() == [floor] * 3


@pytest.mark.parametrize(
    "clamp", ["y = Clip(x, low)", "y = Clip(x, low, low)", "y = Clip(x, x1)", "y = Neg(x)"]
)
def test_what_may_be_negative_is_looked_at_on_both_sides(clamp):
    text = f"a (float[2] x, float x1) => (float[] y) <float low = {{-1}}> {{ {clamp} }}"
    view = slices_of(parse_text(text).values()["y"])
    assert view.pieces == (TensorSlice((2,), ("low", "high")),)


def test_its_largest_values_are_exact_and_its_histogram_is_close(feeds):
    found = observe(GRAPH, feeds)
    values = np.maximum([feed["x"] for feed in feeds], 0)
    assert np.array_equal(found.samples["r"].high, values.max(axis=(1, 2, 3, 4)))
    assert np.array_equal(found.channels["r"].high, values.max(axis=(0, 1, 3, 4)))
    assert (found.tensors["r"].low, found.tensors["r"].high) == (0, values.max())
    exact, near = (
        np.cumsum(h.counts) / h.counts.sum() for h in (histogram(values), found.tensors["r"])
    )
    assert np.abs(near - exact).max() <= 0.01


def test_shards_of_early_and_late_samples_merge_to_the_same_bytes(feeds, tmp_path):
    def digest(statistics):
        statistics.save(tmp_path / "s.npz")
        return hashlib.sha256((tmp_path / "s.npz").read_bytes()).hexdigest()

    early, late = (observe(GRAPH, feeds[:7]), observe(GRAPH, feeds[7:], first=7))
    assert digest(merged_statistics(late, early)) == digest(observe(GRAPH, feeds))


@pytest.mark.parametrize("height", [64, 65, 97])
def test_the_first_and_the_last_row_are_counted_no_more_often_than_they_are(height):
    text = f"a (float[1,64,{height},64] x) => (float[] y) {{ y = Relu(x) }}"
    view = slices_of(parse_text(text).values()["y"])
    _, _, rows, columns = view.pieces[-1].shape
    at = counted_elements(view, MIN_COUNTED) // columns % rows
    assert len(at) >= MIN_COUNTED
    assert np.mean(at == 0) <= 1.5 / height


@pytest.mark.parametrize("text", ["y = Relu(x)", "y = Neg(x)"])
def test_the_same_elements_are_counted_where_channels_lie_side_by_side(text):
    graph = parse_text(f"a (float[1,64,65,64] x) => (float[] y) {{ {text} }}")
    view = slices_of(graph.values()["y"])
    _, channels, rows, columns = view.pieces[-1].shape
    values = np.arange(channels * rows * columns)
    blocks = np.moveaxis(values.reshape(channels // 16, 16, rows, columns), 1, -1)
    places = counted_elements(replace(view, block=16), MIN_COUNTED)
    assert np.array_equal(places, np.sort(places))
    assert np.array_equal(np.sort(blocks.ravel()[places]), counted_elements(view, MIN_COUNTED))


def test_infinity_in_a_piece_is_refused_by_the_tensor_s_name(feeds):
    x = feeds[0]["x"].copy()
    x[0, 3, 1, 1] = np.inf
    with pytest.raises(StageError, match="no finite number"):
        observe(GRAPH, [{"x": x}])


def test_what_is_no_number_in_the_grid_is_refused_though_the_pooling_passes_over_it(feeds):
    graph = parse_text(
        """a (float[1,16,97,80] x, float[1,16,97,80] z) => (float[] s)
        { d = Div(x, z) r = Relu(d) p = MaxPool<kernel_shape=[97,80]>(r) s = Relu(p) }"""
    )
    x, z = feeds[0]["x"].copy(), np.ones(SIZE, np.float32)
    x[0, 5, 3, 6] = z[0, 5, 3, 6] = 0
    with pytest.raises(StageError, match=r"no finite number.*nan \(r\)"):
        observe(graph, [{"x": x, "z": z}] * 20)
