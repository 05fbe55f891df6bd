"""What is looked at block by block is what is there."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.debug.tensor_stats import stats_of
from npumake.kernels.histogram import BLOCK


def node(scale, zero_point, axis=None):
    grid = np.array(scale, np.float32), np.array(zero_point, np.int8)
    return CalibrationNode("n", "activation", "t", "t", (), (), (), *grid, axis)


@pytest.mark.parametrize("reach", [0.4, 3.0])  # within the grid, and beyond both of its ends
@pytest.mark.parametrize(
    ("one", "shape"),
    [
        (node(0.01, -20), (1, 3, 5 * BLOCK // 8)),
        (node([0.01, 0.02, 0.005], [-20, 0, 40], 1), (1, 3, BLOCK)),
    ],
    ids=["one grid", "a grid for each channel"],
)
def test_blocks_add_up(one, shape, reach):
    values = np.random.default_rng(0).uniform(-reach, reach, shape).astype(np.float32)
    channels = values[0].reshape(one.scale.size, -1).astype(np.float64)
    low, high = (np.reshape(limit, (-1, 1)) for limit in one.limits)
    inside = np.clip(channels, low, high)
    lost = channels - one.on_grid(values)[0].reshape(channels.shape)
    found = stats_of(one, values)
    np.testing.assert_array_equal(found.low, channels.min(axis=1))
    np.testing.assert_array_equal(found.high, channels.max(axis=1))
    np.testing.assert_allclose(found.squared_error, (lost**2).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.clipped, ((channels - inside) ** 2).sum(axis=1), rtol=1e-9)
    half = np.reshape(one.scale, (-1, 1)) / 2
    np.testing.assert_array_equal(found.outside, (np.abs(channels - inside) > half).sum(axis=1))
    assert found.numbers == channels.shape[1]
