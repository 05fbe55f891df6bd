"""Sessions under the vendors' names, with their parameters and what they take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from npumake.engine.ort import Feeds
from npumake.errors import GraphError
from npumake.runtime.session import Session


class VendorSession(Session):
    """What the sessions of the vendors tell of a model besides, one item for each port."""

    @property
    def input_shapes(self) -> list[list[int | str | None]]:
        return [list(port.shape) for port in self.get_inputs()]

    @property
    def input_types(self) -> list[str]:
        return [port.dtype.name for port in self.get_inputs()]

    @property
    def output_shapes(self) -> list[list[int | str | None]]:
        return [list(port.shape) for port in self.get_outputs()]

    @property
    def output_types(self) -> list[str]:
        return [port.dtype.name for port in self.get_outputs()]

    @property
    def layout(self) -> list[str]:
        """NHWC where an input of four dimensions ends in one or three channels, else NCHW."""
        return [_layout(port.shape) for port in self.get_inputs()]


class HB_ONNXRuntime(VendorSession):  # noqa: N801 - the vendor's name
    """`HB_ONNXRuntime(model_file="m_quantized_model.onnx").run(None, {"data": image})`.

    An image is fed as pixels, uint8 or float, from which `input_offset` is taken, or as int8 with
    the offset taken already; `run_feature` takes nothing off. Source: the D-Robotics PTQ guide and
    its FAQ. Raises GraphError as `Session` does.
    """

    def __init__(self, model_file: str | Path) -> None:
        super().__init__(model_file)

    def set_dim_param(self, input_index: int, axis: int, value: object) -> None:
        """Opens a dimension there; here a model is fed in the sizes it has."""

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
        takes = {port.name: port.dtype for port in self.get_inputs()}
        return {name: _less_offset(x, takes[name], offset) for name, x in feeds.items()}


class HBRuntime(VendorSession):
    """`HBRuntime("m_ptq_model.onnx").run(None, {"data": image})`, of hb_compile's files: what is
    fed is converted to the input's type and nothing is taken off. `output_name` is the older
    spelling of `output_names`. Raises GraphError, also for both spellings."""

    def run(
        self,
        output_names: Sequence[str] | None = None,
        input_feed: Feeds | None = None,
        input_offset: int = 0,
        *,
        output_name: Sequence[str] | None = None,
    ) -> list[np.ndarray]:
        if output_name is not None and output_names is not None:
            raise GraphError("both `output_names` and `output_name`", hint="keep the first")
        names = output_names if output_name is None else output_name
        return super().run(names, input_feed or {}, input_offset)

    def offset(self, feeds: Feeds, offset: int) -> dict[str, np.ndarray]:
        takes = {port.name: port.dtype for port in self.get_inputs()}
        return {name: _converted(x, takes[name]) for name, x in feeds.items()}


def _layout(sizes: Sequence[int | str | None]) -> str:
    channels = (1, 3)
    return (
        "NHWC" if len(sizes) == 4 and sizes[3] in channels and sizes[1] not in channels else "NCHW"
    )


def _less_offset(x: np.ndarray, dtype: np.dtype[np.generic], offset: int) -> np.ndarray:
    if x.dtype == np.int8 or not offset or x.dtype.kind not in "uif":
        return _converted(x, dtype)
    wide = x.astype(np.float64) - offset
    return _converted(np.rint(wide) if dtype.kind in "iu" else wide, dtype)


def _converted(x: np.ndarray, dtype: np.dtype[np.generic]) -> np.ndarray:
    """Raises GraphError for whole numbers that the type does not hold."""
    converted = x.astype(dtype)
    if dtype.kind in "iu" and x.dtype.kind in "uif" and (converted != x).any():
        raise GraphError(f"it has numbers that {dtype} does not hold")
    return converted
