"""mAP of quantized detectors: npumake on two chips, beside other quantizers.

    python benchmarks/detectors.py [--models yolox] [--targets ara240] [--methods max kl]
                                   [--most-int16 0 0.1] [--float "375 -> boxes"]
                                   [--nncf PYTHON] [--modelopt PYTHON] [--quark PYTHON]

Every second picture of coco128 calibrates, the others measure; stock onnxruntime runs
quantized.onnx. The figures are mAP at IoU .50 and .50:.95 and the recall of boxes with a score of
.25, for pixels mean IoU and the share of equal ones, and the percentage kept of the float model's.
Rows of `best` name the share of multiply-accumulates that read int16, counted in the file; what
`--float` selects stays in float there. `ultraface_raw` ends before the decoding of its boxes. The
last options are Pythons that have the other tools (peers.py). Models and pictures are beside the
repository, or in the folder NPUMAKE_SHARED.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from heads import HEADS, PICTURES, SHARED, Arrays, score
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from peers import add_peers, left_in_float, peers_of

from npumake.data.samples import Feed, Samples
from npumake.digest import of_file
from npumake.engine.ort import OrtSession
from npumake.engine.parallel import side_by_side
from npumake.frontends import read_model
from npumake.graph import Graph, upgraded
from npumake.project.files import SourceFile
from npumake.project.paths import FilePath
from npumake.project.sections import Calibration, ModelSection, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.precision.int16_share import int16_share
from npumake.quant.qdq.insert import DEFAULT
from npumake.stages.calibrated import calibrated
from npumake.stages.optimized_float import optimized_float
from npumake.stages.original_float import original_float
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from npumake.targets.target import Target

Row = tuple[str, Graph | bytes, Sequence[Feed]]


class Bench:
    """One model: its float graph, and the pictures to calibrate with and to be measured on."""

    def __init__(self, name: str) -> None:
        self.head = HEADS[name]
        file = SHARED / "models" / self.head.path
        self.bytes = file.read_bytes()
        source = SourceFile(file.name, str(file), of_file(file))
        trained = read_model(self.bytes, file.name)
        self.input = str(trained.inputs[0].name)
        self.newer = upgraded(trained).to_bytes()  # theirs has no scale per channel before 13
        inputs = {self.input: self.head.input}
        self.graph = optimized_float(
            original_float(ModelSection(FilePath(file.name)), inputs, {"model.path": (source,)})
        )
        files = sorted((PICTURES / "images").rglob("*.jpg"))
        self.files = files[1::2]
        self.pixels = list(side_by_side(self.head.fed, files))

    def feeds(self, trained: bool, measured: bool) -> list[Feed]:
        """As the trained model takes them, or as the chip does: code - 128."""
        given = self.pixels[1 if measured else 0 :: 2]
        mean, scale = (
            np.asarray(n, np.float32) for n in (self.head.input.mean, self.head.input.scale)
        )
        return [{self.input: (x - mean) * scale if trained else x - 128} for x in given]

    def statistics(self) -> Statistics:
        return observe(self.graph, self.feeds(trained=False, measured=False))


def answered(graph: Graph | bytes, feeds: Iterable[Feed]) -> list[Arrays]:
    session = OrtSession(graph if isinstance(graph, bytes) else graph.to_bytes())
    names = session.output_names
    return [
        dict(zip(names, made, strict=True))
        for made in side_by_side(lambda feed: session.run(None, feed), feeds)
    ]


def ours(bench: Bench, target: Target, given: argparse.Namespace) -> Iterator[Row]:
    trained, statistics = bench.graph, bench.statistics()
    feeds = bench.feeds(trained=False, measured=False)
    fed = bench.feeds(trained=False, measured=True)
    samples = Samples(tuple(map(str, range(len(feeds)))), feeds.__getitem__)
    for method in given.methods:
        best = method == "best"
        calibration = Calibration() if best else Calibration(method)
        calibration = replace(calibration, recipe="best" if best else "plain")
        floats: dict[str, Any] = dict.fromkeys(given.float, "float32")
        limited = [Quantization(most_int16=share, types=floats) for share in given.most_int16]
        for asked in limited if best else (DEFAULT, Quantization(widen=True)):
            found = recipe(trained, statistics, samples, calibration, target, quantization=asked)
            if asked.widen and not found.wide:
                continue
            made = calibrated(trained, found, samples, target, quantization=asked)
            label = " + ".join((found.method if best else method, *found.switches))
            graph = quantized(made, target)
            limit = f"best {asked.most_int16:g}: " if best else ""
            wide = f", int16: {100 * share:.1f} %" if (share := int16_share(graph)) else ""
            yield f"{target.name} {limit}{label}{wide}", graph, fed


class _Reader(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)


def onnxruntimes(bench: Bench) -> Row:
    """quantize_static: MinMax, weights per channel, QDQ, after its own preprocessing."""
    with tempfile.TemporaryDirectory() as folder:
        given, prepared, made = (Path(folder, f"{n}.onnx") for n in range(3))
        given.write_bytes(bench.newer)
        quant_pre_process(given, prepared, skip_symbolic_shape=True)
        reader = _Reader(bench.feeds(trained=True, measured=False))
        quantize_static(
            prepared,
            made,
            reader,
            QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return "onnxruntime MinMax", made.read_bytes(), bench.feeds(trained=True, measured=True)


def others(bench: Bench, given: argparse.Namespace) -> Iterator[Row]:
    """The peers, with asymmetric activations where they have them."""
    feeds = bench.feeds(trained=True, measured=False)
    for name, make in peers_of(given, bench.newer, feeds, symmetric=False):
        try:
            made = make()
        except RuntimeError as error:  # a peer's failure is a row too
            print(f"  {name:<26}  {str(error)[:100]}", flush=True)
            continue
        floats = ", ".join(f"{count} {name}" for name, count in left_in_float(made).items())
        print(f"  {name} leaves in float: {floats or 'nothing'}", flush=True)
        yield name, made, bench.feeds(trained=True, measured=True)


def rows(bench: Bench, given: argparse.Namespace) -> Iterator[Row]:
    yield onnxruntimes(bench)
    yield from others(bench, given)
    for target in given.targets:
        yield from ours(bench, read_target(target), given)


def measure(name: str, given: argparse.Namespace) -> None:
    bench = Bench(name)
    meant = answered(bench.bytes, bench.feeds(trained=True, measured=True))
    whole = score(bench.head, bench.files, meant, meant)
    print(f"{name:<28}  {' '.join(f'{figure:6.3f}' for figure in whole)}", flush=True)
    for label, graph, feeds in rows(bench, given):
        found = score(bench.head, bench.files, answered(graph, feeds), meant)
        kept = " ".join(f"{100 * a / b:6.1f}" for a, b in zip(found, whole, strict=True))
        figures = " ".join(f"{figure:6.3f}" for figure in found)
        print(f"  {label:<26}  {figures}   kept {kept}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=HEADS, default=list(HEADS))
    parser.add_argument("--targets", nargs="*", default=["ara240", "rdk-x5"])
    parser.add_argument("--methods", nargs="*", default=["default"])
    parser.add_argument("--most-int16", nargs="*", type=float, default=[0.0, 0.1])
    parser.add_argument("--float", nargs="*", default=[])
    add_peers(parser)
    arguments = parser.parse_args()
    for name in arguments.models:
        measure(name, arguments)


if __name__ == "__main__":
    main()
