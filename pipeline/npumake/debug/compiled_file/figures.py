"""The figures of one output over all samples: against the float model, and the integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Tensor
from npumake.debug.compared import DIGITS, rounded
from npumake.debug.compiled_check import CheckedOutput
from npumake.debug.tensor_agreement import TensorAgreement
from npumake.kernels.measure import Alignment


class OutputFigures(NamedTuple):
    """The figures of one output so far."""

    aligned: Alignment = Alignment()
    codes: int = 0
    relative: float = 0.0
    dtype: str = ""

    def plus(self, aligned: Alignment, agreement: TensorAgreement, dtype: str) -> OutputFigures:
        codes = max(self.codes, agreement.codes or 0)
        relative = max(self.relative, agreement.relative or 0.0)
        return OutputFigures(self.aligned + aligned, codes, relative, dtype)


def checked_output(name: str, output: OutputFigures, grid: Tensor) -> CheckedOutput:
    is_on_grid = grid.scale is not None or np.dtype(grid.dtype).kind != "f"
    return CheckedOutput(
        name,
        round(output.aligned.cosine, DIGITS),
        output.codes if is_on_grid else None,
        None if is_on_grid else rounded(output.relative),
        output.dtype,
        grid.shape,
    )
