"""Subsampling: few elements of a tensor are counted, and its distribution is known."""

import hashlib

import numpy as np
import pytest

from npumake.errors import StageError
from npumake.graph import parse_text
from npumake.kernels.histogram import histogram
from npumake.quant.calibration.buffer_layout import observed_tensor
from npumake.quant.calibration.histogram_observer import EARLY_SAMPLES
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import merged_statistics
from npumake.quant.calibration.subsampling import MIN_COUNTED, counted_elements, grid_step

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


def test_a_large_image_behind_a_clamp_at_zero_is_counted_on_a_grid():
    step = grid_step(SIZE)
    _, row, column = np.unravel_index(counted_elements(SIZE, MIN_COUNTED, True), SIZE)[1:]
    assert step == 3
    assert not (row % step).any()
    assert not (column % step).any()
    assert grid_step((1, 16, 20, 20)) == grid_step((16, 97, 80)) == 1


@pytest.mark.parametrize("enough", [1, 100, MIN_COUNTED, 1 << 30])
@pytest.mark.parametrize("is_clamped", [False, True])
@pytest.mark.parametrize("shape", [SIZE, (2, 3, 200, 9), (70_000,), (1, 5), ()])
def test_enough_elements_are_counted_and_none_twice(shape, is_clamped, enough):
    places = counted_elements(shape, enough, is_clamped)
    assert len(np.unique(places)) == len(places)
    assert places.max() < np.prod(shape, dtype=int)
    least = min(enough, MIN_COUNTED) if is_clamped else enough
    assert len(places) >= min(least, np.prod(shape, dtype=int))


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
    assert observed_tensor(graph.values()["y"], "y").floor == floor
    found = observe(graph, [{"x": rng.normal(8, 1, (1, 3, 4, 5)).astype("f")} for _ in range(3)])
    assert found.tensors["y"].low == floor
    assert found.samples["y"].low.tolist() == [floor] * 3
    assert found.channels["y"].low.tolist() == [floor] * 3


@pytest.mark.parametrize(
    "clamp", ["y = Clip(x, low)", "y = Clip(x, low, low)", "y = Clip(x, x1)", "y = Neg(x)"]
)
def test_a_tensor_that_may_be_negative_has_no_floor(clamp):
    text = f"a (float[2] x, float x1) => (float[] y) <float low = {{-1}}> {{ {clamp} }}"
    assert observed_tensor(parse_text(text).values()["y"], "y").floor == -np.inf


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
    places = counted_elements((1, 64, height, 64), MIN_COUNTED, True)
    row = places // 64 % height
    assert len(places) >= MIN_COUNTED
    assert np.mean(row == 0) <= 1.5 / height
    assert np.mean(row == height - 1) <= 1.5 / height


def test_infinity_is_refused_by_the_tensor_s_name(feeds):
    x = feeds[0]["x"].copy()
    x[0, 3, 1, 1] = np.inf
    with pytest.raises(StageError, match="no finite number"):
        observe(GRAPH, [{"x": x}])


def test_nan_is_refused_though_a_pool_passes_over_it(feeds):
    graph = parse_text(
        """a (float[1,16,97,80] x, float[1,16,97,80] z) => (float[] s)
        { d = Div(x, z) r = Relu(d) p = MaxPool<kernel_shape=[97,80]>(r) s = Relu(p) }"""
    )
    x, z = feeds[0]["x"].copy(), np.ones(SIZE, np.float32)
    x[0, 5, 3, 6] = z[0, 5, 3, 6] = 0
    with pytest.raises(StageError, match=r"no finite number.*nan \(r\)"):
        observe(graph, [{"x": x, "z": z}] * 20)
