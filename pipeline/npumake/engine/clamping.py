"""The clamp bounds of a node as codes of its output grid."""

from __future__ import annotations

import numpy as np

from npumake.bundle.program import Tensor
from npumake.digest import Json
from npumake.engine.fusion import bounds, is_clamp
from npumake.engine.quantized_node import code_of
from npumake.graph import Node


def clamped(node: Node, grid: Tensor, rounding: str) -> dict[str, Json]:
    """The bounds as codes. Rounding is monotonic, so clamping before or after it is the same."""
    limits, real = np.iinfo(grid.dtype), bounds(node if is_clamp(node) else None)
    low = limits.min if real.low is None else code_of(real.low, grid)
    high = limits.max if real.high is None else code_of(real.high, grid)
    return {"low": int(low), "high": int(high), "rounding": rounding}
