"""Sessions under the vendors' names, with their parameters and what they take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.engine.ort import Feeds
from pipeline.errors import GraphError
from pipeline.runtime.session import Session


class HB_ONNXRuntime(Session):  # noqa: N801 - the vendor's name
    """`HB_ONNXRuntime(model_file="m_quantized_model.onnx").run(None, {"data": image})`.

    An image is fed as pixels, uint8 or float, from which `input_offset` is taken, or as int8 with
    the offset taken already; `run_feature` takes nothing off. Source: the D-Robotics PTQ guide and
    its FAQ. Raises GraphError as `Session` does.
    """

    def __init__(self, model_file: str | Path) -> None:
        super().__init__(model_file)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feeds,
        input_offset: int = 128,
    ) -> list[np.ndarray]:
        return super().run(output_names, input_feed, input_offset)

    def run_feature(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feeds,
        input_offset: int = 0,
    ) -> list[np.ndarray]:
        return super().run(output_names, input_feed, input_offset)

    def offset(self, feeds: Feeds, offset: int) -> dict[str, np.ndarray]:
        """The feeds as the inputs take them; int8 has had its offset taken."""
        takes = {given.name: given.dtype for given in self.get_inputs()}
        return {name: _taken(x, takes[name], offset) for name, x in feeds.items()}


class HBRuntime(Session):
    """`HBRuntime("m_ptq_model.onnx").run(None, {"data": image})`, of hb_compile's files: what is
    fed is converted to the input's type and nothing is taken off. Raises GraphError."""

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feeds,
        input_offset: int = 0,
    ) -> list[np.ndarray]:
        return super().run(output_names, input_feed, input_offset)

    def offset(self, feeds: Feeds, offset: int) -> dict[str, np.ndarray]:
        takes = {given.name: given.dtype for given in self.get_inputs()}
        return {name: _converted(x, takes[name]) for name, x in feeds.items()}


def _taken(x: np.ndarray, dtype: np.dtype[np.generic], offset: int) -> np.ndarray:
    if x.dtype == np.int8 or not offset or x.dtype.kind not in "uif":
        return _converted(x, dtype)
    wide = x.astype(np.float64) - offset
    return _converted(np.rint(wide) if dtype.kind in "iu" else wide, dtype)


def _converted(x: np.ndarray, dtype: np.dtype[np.generic]) -> np.ndarray:
    """Raises GraphError for whole numbers that the type does not hold."""
    found = x.astype(dtype)
    if dtype.kind in "iu" and x.dtype.kind in "uif" and (found != x).any():
        raise GraphError(f"it has numbers that {dtype} does not hold")
    return found
