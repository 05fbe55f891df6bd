"""onnxruntime's quantize_static on the same samples: Q/DQ, symmetric weights per channel."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from blocks.net import Block
from npumake.engine.ort import Feeds

OLDEST = 13  # with scales per channel


class _Reader(CalibrationDataReader):  # type: ignore[misc]  # the package has no types
    def __init__(self, feeds: Sequence[Feeds]) -> None:
        self._feeds: Iterator[Feeds] = iter(feeds)

    def get_next(self) -> Feeds | None:
        return next(self._feeds, None)


def quantized_static(block: Block, is_symmetric: bool) -> bytes:
    """Its Q/DQ model; activations are symmetric on request, ranges by MinMax."""
    model = onnx.load_from_string(block.model)
    if model.opset_import[0].version < OLDEST:
        model = onnx.version_converter.convert_version(model, OLDEST)
    with TemporaryDirectory() as folder:
        source, prepared, made = (str(Path(folder, f"{n}.onnx")) for n in ("a", "b", "c"))
        onnx.save(model, source)
        logging.disable(logging.WARNING)
        try:
            quant_pre_process(source, prepared, skip_symbolic_shape=True)
            quantize_static(
                prepared,
                made,
                _Reader(block.calibration),
                QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                extra_options={"ActivationSymmetric": is_symmetric},
            )
        finally:
            logging.disable(logging.NOTSET)
        return Path(made).read_bytes()


def errors(
    block: Block, found: Sequence[Sequence[np.ndarray]], meant: Sequence[Sequence[np.ndarray]]
) -> list[float]:
    """Of each compared output: ‖found - meant‖ / ‖meant - mean‖ over the held-out samples."""
    form = block.compared_int8 or block.compared
    pairs = [list(zip(form(a), form(b), strict=True)) for a, b in zip(found, meant, strict=True)]
    return [_error(of_output) for of_output in zip(*pairs, strict=True)]


def _error(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    found, meant = (np.concatenate([x.ravel() for x in side]) for side in zip(*pairs, strict=True))
    found, meant = found.astype(np.float64), meant.astype(np.float64)
    return float(np.linalg.norm(found - meant) / np.linalg.norm(meant - meant.mean()))
