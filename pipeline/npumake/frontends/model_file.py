"""What a reader of model files is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from npumake.graph import Beside


class Ends(NamedTuple):
    """Tensors by name that the model is to begin and to end at; none: where the file says."""

    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()


class ModelFile(NamedTuple):
    """What a reader is given: the file, those of its weights, and shapes of inputs by name."""

    data: bytes
    name: str
    weights: Sequence[Beside]
    shapes: Mapping[str, tuple[int, ...]]
    ends: Ends = Ends()
