"""The arguments of a model reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from npumake.graph import Beside


class Ends(NamedTuple):
    """Tensors at which the model begins and ends; empty for those of the file."""

    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()


class ModelFile(NamedTuple):
    """The arguments of a reader: the file, its weight files, and input shapes by name."""

    data: bytes
    name: str
    weights: Sequence[Beside]
    shapes: Mapping[str, tuple[int, ...]]
    ends: Ends = Ends()
