"""What a chart shows of a tensor is what the tensor did."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from npumake.kernels.histogram import histogram
from npumake.quant.precision.linear_layers import layer
from npumake.report.tensors import BARS, MAX_CHANNELS, bars, weight_channels
from trained import network

floats = arrays(np.float32, st.integers(1, 400), elements=st.floats(-50, 50, width=32))


@given(floats)
def test_every_value_is_in_a_bar(x: np.ndarray) -> None:
    assert sum(bars(histogram(x))) == x.size


def test_the_bars_are_those_of_numpy_but_for_what_lies_on_an_edge() -> None:
    x = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    expected, _ = np.histogram(x, BARS, (x.min(), x.max()))
    assert np.abs(np.array(bars(histogram(x))) - expected).sum() < 0.01 * x.size


def test_the_box_of_a_channel_is_that_of_its_weights() -> None:
    graph = network("repvgg")
    found = weight_channels(graph)
    for node in graph.nodes("Conv"):
        made = layer(node)
        assert made is not None
        channels = found[str(node.name)]
        assert channels.count == made.channels
        assert len(channels.numbers) == min(made.channels, MAX_CHANNELS)
        for number, box in zip(channels.numbers, channels.boxes, strict=True):
            expected = np.percentile(made.values[number], (0, 25, 50, 75, 100))
            np.testing.assert_allclose(box, expected, rtol=1e-3)
