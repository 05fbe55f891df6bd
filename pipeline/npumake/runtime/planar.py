"""Wraps a session with NHWC images, so that callers use the model's NCHW."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from npumake.engine.ort import Feeds
from npumake.engine.port import Port

Shapes = Mapping[str, tuple[int, ...]]


class PlanarSession(Protocol):
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]: ...


class Planar:
    """`inputs` and `outputs` are the model's shapes by name. Arrays with another shape in the file
    are transposed; all others pass unchanged."""

    def __init__(self, session: PlanarSession, inputs: Shapes, outputs: Shapes) -> None:
        self._session = session
        self._turned_inputs = {p.name for p in session.inputs if tuple(p.shape) != inputs[p.name]}
        self._turned_outputs = {
            p.name for p in session.outputs if tuple(p.shape) != outputs[p.name]
        }
        self.output_names = tuple(outputs)

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """The named outputs (None: all, in the model's order)."""
        file_feeds = {
            n: np.moveaxis(x, 1, -1) if n in self._turned_inputs else x for n, x in feeds.items()
        }
        names = names or self.output_names
        outputs = zip(names, self._session.run(names, file_feeds), strict=True)
        return [np.moveaxis(y, -1, 1) if name in self._turned_outputs else y for name, y in outputs]
