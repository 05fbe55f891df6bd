"""Sessions with the vendors' class names, parameters and input conversions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from npumake.engine.ort import Feeds
from npumake.errors import GraphError
from npumake.runtime.session import Session


class VendorSession(Session):
    """The extra properties of the vendors' sessions, one item per port."""

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

    Pixels are uint8 or float, and `input_offset` is subtracted; int8 images have it subtracted
    already. `run_feature` subtracts nothing. Source: the D-Robotics PTQ guide and its FAQ. Raises
    GraphError as `Session` does.
    """

    def __init__(self, model_file: str | Path) -> None:
        super().__init__(model_file)

    def set_dim_param(self, input_index: int, axis: int, value: object) -> None:
        """No effect: here the model's sizes are fixed."""

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
        """The feeds in the inputs' types; int8 has its offset subtracted already."""
        takes = {port.name: port.dtype for port in self.get_inputs()}
        return {name: _less_offset(x, takes[name], offset) for name, x in feeds.items()}


class HBRuntime(VendorSession):
    """`HBRuntime("m_ptq_model.onnx").run(None, {"data": image})`, for hb_compile's files.

    Feeds are converted to the input's type, without an offset. `output_name` is the older spelling
    of `output_names`. Raises GraphError as `Session` does, and for both spellings at once."""

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
    """`x` in the type. Raises GraphError for integers outside its range."""
    converted = x.astype(dtype)
    if dtype.kind in "iu" and x.dtype.kind in "uif" and (converted != x).any():
        raise GraphError(f"it has numbers that {dtype} does not hold")
    return converted
