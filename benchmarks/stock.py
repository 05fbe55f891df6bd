"""Sensitivity by a script of stock packages: onnx, onnxruntime and NumPy, without npumake.

    python benchmarks/stock.py model.onnx samples.npz

Ranges are derived once, over all samples. Then, for every node that onnxruntime quantizes, its
quantizer puts Q/DQ around only that node, and a session runs the whole model on every sample. The
cosine with the float outputs, computed once, is the node's figure. One thread. It prints the CPU
seconds and the nodes, the most sensitive first.

samples.npz has the concatenated samples of each input under its name.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnx  # it imports nothing of ours
import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantType,
)
from onnxruntime.quantization.calibrate import create_calibrator
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.registry import QDQRegistry

Feed = Mapping[str, np.ndarray]
SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True}


class Ranked(NamedTuple):
    """Seconds of CPU after the ranges were found, and the cosine of each node."""

    seconds: float
    cosines: dict[str, float]


class _Reader(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)


def read(data: bytes) -> onnx.ModelProto:
    return onnx.load_from_string(data)


def sensitivities(
    model: onnx.ModelProto, feeds: Sequence[Feed], names: Collection[str] | None = None
) -> Ranked:
    """Each of these nodes that onnxruntime quantizes, by default of all, alone."""
    known = [node.name for node in model.graph.node if node.op_type in QDQRegistry]
    chosen = [name for name in known if names is None or name in names]
    ranges = _ranges(model, feeds)
    start = time.process_time()
    meant = _answers(model, feeds)
    found = {name: _cosine(meant, _answers(_only(model, name, ranges), feeds)) for name in chosen}
    return Ranked(time.process_time() - start, found)


def _ranges(model: onnx.ModelProto, feeds: Sequence[Feed]) -> Any:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        onnx.save(model, str(file))
        watched = str(file.with_name("watched.onnx"))
        calibrator = create_calibrator(file, augmented_model_path=watched)
        calibrator.collect_data(_Reader(feeds))
        return calibrator.compute_data()


def _only(model: onnx.ModelProto, name: str, ranges: Any) -> onnx.ModelProto:
    """The model that quantizes this node alone."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    signed, kinds = QuantType.QInt8, list(QDQRegistry)
    made = QDQQuantizer(
        copy, True, False, signed, signed, ranges, [name], [], kinds, dict(SYMMETRIC)
    )
    made.quantize_model()
    return made.model.model


def _answers(model: onnx.ModelProto, feeds: Sequence[Feed]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    cpu = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=cpu)
    return [np.concatenate([one.ravel() for one in session.run(None, feed)]) for feed in feeds]


def _cosine(meant: Sequence[np.ndarray], made: Sequence[np.ndarray]) -> float:
    a, b = (np.concatenate(each).astype(np.float64) for each in (meant, made))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("model", type=Path)
    parser.add_argument("samples", type=Path)
    given = parser.parse_args()
    arrays = dict(np.load(given.samples))
    count = min(len(one) for one in arrays.values())
    feeds = [{name: one[index] for name, one in arrays.items()} for index in range(count)]
    seconds, cosines = sensitivities(onnx.load(str(given.model)), feeds)
    print(f"{len(cosines)} nodes in {seconds:.2f} s of CPU")
    for name in sorted(cosines, key=cosines.__getitem__):
        print(f"{cosines[name]:.6f}  {name}")


if __name__ == "__main__":
    main()
