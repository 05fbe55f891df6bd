"""An integer program: quantized tensors and the instructions between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npumake.digest import Json

SUMS = "int32"  # the type of a raw accumulator output


@dataclass(frozen=True)
class Tensor:
    """A tensor of the program. Real value = scale * (integer - zero_point).

    A tensor of type SUMS holds raw accumulators: its scale is 1, and the `dequantize` behind it
    has one scale per channel. `scale` is None for float tensors: inputs, outputs, CPU subgraphs.
    """

    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None
    zero_point: int = 0


@dataclass(frozen=True)
class Instruction:
    """One step. `name` is the graph node, `op` the kernel; constants are arrays by role.

    `origin` lists the nodes of the trained model that the step computes."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    attributes: Mapping[str, Json] = field(default_factory=dict)
    origin: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """Instructions in order; each reads program inputs or outputs of earlier instructions."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    instructions: tuple[Instruction, ...]
