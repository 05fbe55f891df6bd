"""Inputs and outputs of a session, typed in onnxruntime's words: `tensor(float)`, not float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SPELLED = {"float32": "float", "float64": "double"}
NUMPY = {spelled: name for name, spelled in SPELLED.items()}


class Port(NamedTuple):
    """An input or output of a session; an open dimension is a name or None."""

    name: str
    shape: Sequence[int | str | None]
    type: str

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy type. Raises TypeError for a type that NumPy lacks."""
        inner = self.type.removeprefix("tensor(").removesuffix(")")
        return np.dtype(NUMPY.get(inner, inner))


def port(name: str, shape: Sequence[int], dtype: str) -> Port:
    return Port(name, list(shape), f"tensor({SPELLED.get(dtype, dtype)})")
