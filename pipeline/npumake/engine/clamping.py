"""The clamp of a node, in the codes of the grid that it gives."""

from __future__ import annotations

import numpy as np

from npumake.bundle.program import Tensor
from npumake.digest import Json
from npumake.engine.fusion import bounds, is_clamp
from npumake.engine.quantized_node import code_of
from npumake.graph import Node


def clamped(node: Node, grid: Tensor, rounding: str) -> dict[str, Json]:
    """Rounding is monotonic, so it may come first."""
    limits, real = np.iinfo(grid.dtype), bounds(node if is_clamp(node) else None)
    low = limits.min if real.low is None else code_of(real.low, grid)
    high = limits.max if real.high is None else code_of(real.high, grid)
    return {"low": int(low), "high": int(high), "rounding": rounding}
