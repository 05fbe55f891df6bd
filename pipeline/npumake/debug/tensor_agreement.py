"""Compares two computations of one tensor.

    codes       round(max |a - b| / scale)    for quantized tensors; other integers have scale 1
    relative    max |a - b| / max |a|         for float tensors; 0 if both are zero

`a` is expected. NaN and infinity must match exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.bundle.program import SUMS, Program, Tensor
from npumake.kernels import affine


class TensorAgreement(NamedTuple):
    """Either `codes` or `relative`, with the `position` of the largest difference; or a `problem`
    that no bound allows: another shape or type, NaN or infinity."""

    codes: int | None = None
    relative: float | None = None
    problem: str = ""
    position: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        at = f" at {list(self.position)}" if self.position else ""
        if self.codes is not None:
            return f"{self.codes} code{'' if self.codes == 1 else 's'}{at}"
        return f"{self.relative:.3g} of the largest magnitude{at}"


def tensor_agreement(a: np.ndarray, b: np.ndarray, grid: Tensor) -> TensorAgreement:
    """Compare `b` with the expected `a`; each may be quantized on `grid`, or float."""
    if a.shape != b.shape:
        return TensorAgreement(problem=f"it has the shape {list(b.shape)}, not {list(a.shape)}")
    if (a.dtype.kind in "fiu") != (b.dtype.kind in "fiu"):
        return TensorAgreement(problem=f"it is {b.dtype}, not {a.dtype}")
    is_real = grid.scale is not None or "f" in (a.dtype.kind, b.dtype.kind)
    x, y = _real(a, grid), _real(b, grid)
    is_finite = np.isfinite(x) & np.isfinite(y)
    unlike = ~(is_finite | (x == y) | (np.isnan(x) & np.isnan(y)))
    if unlike.any():
        at = _position(unlike)
        return TensorAgreement(problem=f"it is {y[at]} at {list(at)}, not {x[at]:.6g}", position=at)
    apart = np.abs(np.subtract(x, y, out=np.zeros_like(x), where=is_finite))
    at = _position(apart)
    max_difference = float(apart[at]) if apart.size else 0.0
    if not is_real or grid.scale is not None:
        return TensorAgreement(
            codes=round(max_difference / (grid.scale or 1.0)), position=at if max_difference else ()
        )
    largest = float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
    relative = max_difference / largest if largest else float(max_difference > 0)
    return TensorAgreement(relative=relative, position=at if max_difference else ())


def output_grid(program: Program, name: str) -> Tensor:
    """The grid of an output; of a dequantized output, that of its quantized tensor."""
    tensor = program.tensors[name]
    for step in program.instructions:
        if name in step.outputs and step.op == "dequantize":
            codes = program.tensors[step.inputs[0]]
            return tensor if codes.dtype == SUMS else codes
    return tensor


def _real(values: np.ndarray, grid: Tensor) -> np.ndarray:
    """The values dequantized, in float64."""
    if values.dtype.kind != "f" and grid.scale is not None:
        values = affine.dequantize(values, np.float32(grid.scale), grid.zero_point)
    return values.astype(np.float64)


def _position(values: np.ndarray) -> tuple[int, ...]:
    """The index of the largest value, by axis."""
    if not values.size:
        return ()
    return tuple(int(at) for at in np.unravel_index(int(values.argmax()), values.shape))
