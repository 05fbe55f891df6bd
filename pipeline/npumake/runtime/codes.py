"""Inputs and outputs of a quantized file: real = scale * (code - zero point), or raw codes.

Tensors have the file's layout, images NHWC.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npumake.engine.port import Port, port
from npumake.errors import GraphError
from npumake.kernels import affine


@dataclass(frozen=True)
class CodePort:
    """An input or output. `scale` is None for real numbers."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    scale: float | None
    zero_point: int

    @property
    def port(self) -> Port:
        return port(self.name, self.shape, self.dtype)

    def codes(self, array: np.ndarray | None) -> np.ndarray:
        """The quantized input. Raises GraphError for a missing one, a wrong shape or type."""
        if array is None:
            raise GraphError(f"the input `{self.name}` is not fed")
        dtypes = (self.dtype,) if self.scale is None else (self.dtype, "float32")
        if array.shape != self.shape or str(array.dtype) not in dtypes:
            raise GraphError(
                f"`{self.name}` is fed {array.dtype}{list(array.shape)}, "
                f"the file takes {' or '.join(dtypes)}{list(self.shape)}"
            )
        if self.scale is None or str(array.dtype) == self.dtype:
            return array
        limits = np.iinfo(self.dtype)
        scale = np.float32(self.scale)
        codes = affine.quantize(array, scale, self.zero_point, limits.min, limits.max)
        return codes.astype(self.dtype)

    def real(self, codes: np.ndarray) -> np.ndarray:
        if self.scale is None:
            return codes
        return affine.dequantize(codes, np.float32(self.scale), self.zero_point)
