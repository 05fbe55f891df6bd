"""Statistics: those of all activations held at once, in whatever order they came."""

import hashlib
import tracemalloc
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.distribution import ThreadDistributor, distributing
from npumake.engine.ort import OrtSession
from npumake.errors import CacheError, StageError
from npumake.graph import parse_text
from npumake.kernels.histogram import BINS, histogram
from npumake.quant.calibration import histogram_observer, shards
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics, merged_statistics
from npumake.quant.precision.placement import observed_tensors

BODY = """<float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}>
{ c = Conv(x, w)  r = Relu(c)  m = MaxPool<kernel_shape=[2,2]>(r)  e = Exp(m)  y = Neg(e) }"""
GRAPH = parse_text(f"a (float[1,2,4,4] x) => (float[] y) {BODY}")


@pytest.fixture
def feeds():
    """Magnitudes over eight powers of ten, so that bins of many widths must be merged."""
    rng = np.random.default_rng(0)
    sizes = np.logspace(-7, 0, 9)
    return [{"x": (rng.normal(size=(1, 2, 4, 4)) * size).astype(np.float32)} for size in sizes]


def saved(statistics, path):
    statistics.save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_they_are_those_of_all_activations_held_at_once(feeds):
    names = observed_tensors(GRAPH)
    assert names == ("x", "r", "e", "y")  # a pool moves values; a conv is seen behind its ReLU
    watched = GRAPH.copy()
    watched.expose(names)
    runs = [OrtSession(watched.to_bytes()).run(None, feed) for feed in feeds]
    found = observe(GRAPH, feeds).tensors
    assert tuple(found) == names
    for name, *values in zip(names, *runs, strict=True):
        whole, merged = histogram(np.concatenate([v.ravel() for v in values])), found[name]
        assert np.array_equal(whole.counts, merged.counts)
        assert (whole.exponent, whole.low, whole.high, whole.count) == (
            merged.exponent,
            merged.low,
            merged.high,
            merged.count,
        )


def counts(statistics):
    return [(h.exponent, h.counts.tobytes(), h.low, h.high) for h in statistics.tensors.values()]


def test_neither_order_nor_threads_nor_batches_change_a_byte(feeds, tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    monkeypatch.setenv("NPUMAKE_THREADS", "1")
    expected = saved(observe(GRAPH, feeds), path)
    parts = [observe(GRAPH, feeds[i : i + 3], first=i) for i in (6, 0, 3)]
    assert saved(reduce(merged_statistics, parts), path) == expected
    assert saved(observe(GRAPH, feeds, ceiling=1), path) == expected
    monkeypatch.setenv("NPUMAKE_THREADS", "3")
    assert saved(observe(GRAPH, feeds), path) == expected
    batched = parse_text(f"a (float[3,2,4,4] x) => (float[] y) {BODY}")
    batches = [{"x": np.concatenate([f["x"] for f in feeds[i::3]])} for i in range(3)]
    assert counts(observe(batched, batches)) == counts(observe(GRAPH, feeds[::-1]))


def many(feeds):
    """More than are looked at closely."""
    return [{"x": feed["x"] * np.float32(1 + i)} for i in range(3) for feed in feeds]


@pytest.mark.parametrize("cuts", [[0, 16, 27], [0, 5, 20, 27], [0, 26, 27]])
def test_a_shard_may_begin_behind_what_is_looked_at_closely(feeds, cuts, tmp_path):
    feeds, path = many(feeds), tmp_path / "s.npz"
    expected = saved(observe(GRAPH, feeds), path)
    parts = [observe(GRAPH, feeds[a:b], first=a) for a, b in pairwise(cuts)]
    assert saved(reduce(merged_statistics, parts), path) == expected


# Tensors whose statistics follow from others, and a Softmax whose peaks are watched.
FOLLOWING = """a (float[1,2,4,4] x) => (float[1,4,4,4] y, float[1,32] z)
{ s = Sigmoid(x)  u = Mul(x, s)  t = Tanh(x)  y = Concat<axis=1>(u, t)  f = Flatten(x)
  z = Softmax(f) }"""


@pytest.mark.parametrize("text", [FOLLOWING, f"a (float[1,2,4,4] x) => (float[] y) {BODY}"])
@pytest.mark.parametrize("width", [2, 5, 27])
def test_shards_of_a_stage_give_the_bytes_of_one_process(feeds, text, width, tmp_path, monkeypatch):
    graph, fed = parse_text(text).with_shapes(), many(feeds)
    samples = Samples(tuple(map(str, range(len(fed)))), fed.__getitem__)
    monkeypatch.setattr(shards, "MIN_SHARD_SAMPLES", 1)
    expected = saved(observe(graph, samples), tmp_path / "s.npz")
    assert saved(shards.observe_shards(graph, samples), tmp_path / "s.npz") == expected
    with distributing(ThreadDistributor(width)):
        assert saved(shards.observe_shards(graph, samples), tmp_path / "s.npz") == expected


@pytest.mark.parametrize("threads", [1, 3, 27])
@pytest.mark.parametrize("held", [1, 1 << 13, 1 << 60])
def test_how_many_values_wait_changes_no_byte(feeds, threads, held, tmp_path, monkeypatch):
    feeds, path = many(feeds), tmp_path / "s.npz"
    expected = saved(observe(GRAPH, feeds), path)
    monkeypatch.setattr(histogram_observer, "MAX_WAITING_PER_TENSOR", held)
    monkeypatch.setenv("NPUMAKE_THREADS", str(threads))
    assert saved(observe(GRAPH, feeds), path) == expected


def test_saving_and_loading_changes_nothing(feeds, tmp_path):
    digest = saved(observe(GRAPH, feeds), tmp_path / "s.npz")
    assert saved(Statistics.load(tmp_path / "s.npz"), tmp_path / "t.npz") == digest


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 and then nothing", b"\x93NUMPY"])
def test_a_damaged_file_is_a_cache_error(data, tmp_path):
    (tmp_path / "s.npz").write_bytes(data)
    with pytest.raises(CacheError, match="not a statistics file"):
        Statistics.load(tmp_path / "s.npz")


def test_a_model_that_makes_no_number_is_refused_by_the_tensor_s_name():
    graph = parse_text("a (float[2] x) => (float[] y) { l = Log(x)  y = Neg(l) }")
    with pytest.raises(StageError, match=r"no finite number.*\(l\)"):
        observe(graph, [{"x": np.array([1.0, -1.0], np.float32)}])


def test_a_model_that_only_moves_values_is_known_by_its_input():
    graph = parse_text("a (float[4] x) => (float[] y) <int64[2] s = {2,2}> { y = Reshape(x, s) }")
    found = observe(graph, [{"x": np.array([1, -2, 3, 0], np.float32)}]).tensors
    assert list(found) == ["x"]
    assert (found["x"].low, found["x"].high) == (-2, 3)


def test_a_tensor_without_a_value_is_refused_by_its_name():
    text = """a (float[1,4] x) => (float[1,4] y) <int64[2] s = {0,4}, int64[2] e = {1,4}>
        { z = Slice(x, s, e)  r = Relu(z)  y = Concat<axis=1>(x, r) }"""
    with pytest.raises(StageError, match=r"`r` holds no value, its shape is \[1, 0\]"):
        observe(parse_text(text).with_shapes(), [{"x": np.zeros((1, 4), "f")}])


def test_integers_have_no_range():
    graph = parse_text("a (int64[4] x) => (int64[] y) { y = Neg(x) }")
    assert observe(graph, [{"x": np.arange(4)}]).tensors == {}


def tensor_bytes(length, path):
    """The peak of Python's memory to observe a chain, and to save and load its statistics."""
    names = ["x", *(f"t{number}" for number in range(length - 1)), "y"]
    body = " ".join(f"{made} = Relu({read})" for read, made in pairwise(names))
    graph = parse_text(f"a (float[1,2,4,4] x) => (float[1,2,4,4] y) {{ {body} }}").with_shapes()
    feeds = [{"x": np.ones((1, 2, 4, 4), np.float32)}]
    tracemalloc.start()
    try:
        observe(graph, feeds).save(path)
        assert len(Statistics.load(path).tensors) == length + 1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_tensor_of_few_values_takes_less_memory_than_its_empty_bins(tmp_path):
    """A chain of 20,000 nodes would take 5 GB of empty bins."""
    short, long = 100, 300
    more = tensor_bytes(long, tmp_path / "s.npz") - tensor_bytes(short, tmp_path / "s.npz")
    bins = 2 * BINS * np.dtype(np.int64).itemsize
    assert more < (long - short) * bins // 4
