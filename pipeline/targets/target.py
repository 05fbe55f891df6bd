"""Target: what a chip can hold, as the quantizer and the compiler need to know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pipeline.project.doc import Doc


@dataclass(frozen=True)
class Activations:
    """The per-tensor grid of activations. Symmetric: zero point 0, threshold at the top code."""

    dtype: Literal["int8", "uint8"]
    symmetric: bool


@dataclass(frozen=True)
class Weights:
    """The grid of weights: symmetric, zero point 0."""

    dtype: Literal["int8"]
    per_channel: bool


@dataclass(frozen=True)
class Target:
    name: str
    vendor: str
    unit: Annotated[str, Doc("What the vendor calls the accelerator in its tables.")]
    activations: Activations
    weights: Weights
    rounding: Annotated[
        Literal["half_even", "half_up", "half_away"],
        Doc("How an accumulator is rounded onto the output grid."),
    ]
    march: Annotated[str | None, Doc("The vendor's name of the architecture.")] = None
    operators: Annotated[
        tuple[str, ...] | None,
        Doc("ONNX operators the unit runs. None: not documented, all with an integer kernel."),
    ] = None

    def runs(self, op_type: str) -> bool:
        """Whether the unit is known, or not known not, to run the operator."""
        return self.operators is None or op_type in self.operators
