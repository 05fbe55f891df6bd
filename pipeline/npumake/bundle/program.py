"""An integer program: tensors on their grids and the instructions between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npumake.digest import Json

SUMS = "int32"  # the type of what a layer hands out as it accumulated it


@dataclass(frozen=True)
class Tensor:
    """A tensor a program computes. Real value = scale * (integer - zero_point).

    One of SUMS is what a layer accumulated: its scale is 1, and `dequantize` has each channel's.

    `scale` is None for a float tensor: what the program is fed, gives back, or leaves to the CPU.
    """

    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None
    zero_point: int = 0


@dataclass(frozen=True)
class Instruction:
    """One step. `name` is the graph node's, `op` the kernel's; constants are arrays by role.

    `origin` names the nodes of the trained model that the step computes."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    attributes: Mapping[str, Json] = field(default_factory=dict)
    origin: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """Instructions in order; every input of one is a program input or an earlier output."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    instructions: tuple[Instruction, ...]
