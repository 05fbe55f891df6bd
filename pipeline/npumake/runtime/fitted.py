"""Fits one image to sessions that take other layouts and types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npumake.engine.ort import Feeds
from npumake.engine.port import Port

TURNS = ((0, 2, 3, 1), (0, 3, 1, 2))  # NCHW to NHWC, and back


def fitted_feeds(feeds: Feeds, ports: Sequence[Port]) -> dict[str, np.ndarray]:
    """The feeds in the layout and type of the ports; feeds that do not fit stay unchanged."""
    by_name = {port.name: port for port in ports}
    return {name: _fitted(x, by_name[name]) if name in by_name else x for name, x in feeds.items()}


def _fitted(x: np.ndarray, port: Port) -> np.ndarray:
    size = tuple(port.shape)
    if x.ndim == 4 and x.shape != size:
        turned = (x.transpose(turn) for turn in TURNS)
        x = next((array for array in turned if array.shape == size), x)
    whole = port.dtype.kind not in "iu" or np.array_equal(x, x.astype(port.dtype))
    return np.ascontiguousarray(x).astype(port.dtype) if whole else x
