"""Every Caffe layer computes what its formula says, to 1e-5."""

from contextlib import suppress
from math import ceil

import numpy as np
import pytest

from frontends.layers import CASES, pooled
from frontends.nets import caffemodel, inputs, read, run
from npumake.errors import GraphError
from npumake.frontends.caffe import LAYERS

OTHER = {"other": [np.zeros(1)]}  # no .caffemodel is without any weights


def given(what, seed=1):
    """What a case feeds: random numbers of this shape, or these."""
    if isinstance(what, tuple):
        what = np.random.default_rng(seed).normal(size=what)
    return np.asarray(what, np.float32)


def net(case, feeds):
    bottoms = "".join(f' bottom: "x{i}"' for i in range(len(feeds)))
    tops = "".join(f' top: "y{i}"' for i in range(case.tops))
    layer = f'layer {{ name: "it" type: "{case.type}"{bottoms}{tops} {case.text} }}'
    return inputs(*(feed.shape for feed in feeds)) + layer


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type} {case.text}")
def test_a_layer_computes_its_formula(case):
    feeds = [given(what, seed) for seed, what in enumerate(case.fed)]
    blobs = [given(what, 9 + seed) for seed, what in enumerate(case.blobs)]
    graph = read(net(case, feeds), caffemodel(OTHER | {"it": blobs}))
    assert [str(value.name) for value in graph.outputs] == [f"y{i}" for i in range(case.tops)]
    wanted = case.formula(*(array.astype(np.float64) for array in (*feeds, *blobs)))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, want in zip(run(graph, feeds), wanted, strict=True):
        assert got.dtype == np.float32
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rank", range(6))
def test_a_layer_over_any_number_of_dimensions_is_a_graph_or_an_error(rank):
    for case in CASES:
        feeds = [np.zeros((4,) * rank, np.float32) for _ in case.fed]
        weights = caffemodel(OTHER | {"it": [given(what) for what in case.blobs]})
        with suppress(GraphError):
            assert read(net(case, feeds), weights).nodes()


def test_every_layer_has_a_case():
    assert {case.type for case in CASES} == set(LAYERS) - {"Silence"}


@pytest.mark.parametrize("method", ["max", "ave"])
@pytest.mark.parametrize(
    ("k", "s", "p"),
    [(k, s, p) for k in (1, 2, 3, 5) for s in (1, 2, 3) for p in (0, 1, 2) if p < k],
)
def test_pooling_rounds_up_and_divides_as_caffe_does(method, k, s, p):
    """Also where windows reach beyond the padding, and where they end before it."""
    for size in range(max(k, s), 10):
        x = np.random.default_rng(size).normal(size=(1, 2, size, size)).astype(np.float32)
        text = f"pool: {method.upper()} kernel_size: {k} stride: {s} pad: {p}"
        layer = f'layer {{ type: "Pooling" bottom: "x0" top: "y" pooling_param {{ {text} }} }}'
        network = inputs(x.shape) + layer
        if p == 0 and ceil((size - k) / s) * s >= size:  # Caffe gives -FLT_MAX or 0 / 0
            with pytest.raises(GraphError, match="a window outside its input"):
                read(network, caffemodel(OTHER))
            continue
        (got,) = run(read(network, caffemodel(OTHER)), [x])
        np.testing.assert_allclose(got, pooled(x, k, s, p, method)[0], rtol=1e-5, atol=1e-6)
