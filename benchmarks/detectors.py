"""mAP of quantized detectors on two chips. Other quantizers are measured by beside.py.

    python benchmarks/detectors.py [--models yolox] [--targets ara240] [--methods max kl]
                                   [--most-int16 0 0.1] [--float "375 -> boxes"]

Every second picture of coco128 calibrates, the others measure; stock onnxruntime runs
quantized.onnx. The figures are mAP at IoU .50 and .50:.95 and the recall of boxes with a score of
.25, in percent of the float model's, each with its 95 % interval (paired.py); then the points by
which scores of .25 and more shift. For pixels they are mean IoU and the share of equal ones. Rows
of `best` name the share of multiply-accumulates that read int16, counted in the file; what
`--float` selects stays in float there. `ultraface_raw` ends before the decoding of its boxes.
Models and pictures are beside the repository, or in the folder NPUMAKE_SHARED.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from beside_page import TASKS, with_interval
from heads import HEADS, PICTURES, SHARED, Arrays, pictures, total
from paired import interval, resampled

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


def measure(name: str, given: argparse.Namespace) -> None:
    bench = Bench(name)
    meant = answered(bench.bytes, bench.feeds(trained=True, measured=True))
    floats = pictures(bench.head, bench.files, meant, meant)
    whole = " ".join(f"{figure:.3f}" for figure in total(bench.head, floats))
    print(f"{name:<28}  {whole}", flush=True)
    for target in map(read_target, given.targets):
        for label, graph, feeds in ours(bench, target, given):
            rows = pictures(bench.head, bench.files, answered(graph, feeds), meant)
            print(f"  {label:<26}  {line(name, floats, rows)}", flush=True)


def line(name: str, floats: Sequence[Any], rows: Sequence[Any]) -> str:
    """The figures of one row beside the float model's, with intervals."""
    totals = resampled({"float": floats, "row": rows}, partial(total, HEADS[name]))
    before, after = totals["float"], totals["row"]
    columns = TASKS.get(name, TASKS["ultraface"]).columns
    return "  ".join(
        with_interval(interval(column.figure(after[:, n], before[:, n])))
        for n, column in enumerate(columns)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=HEADS, default=list(HEADS))
    parser.add_argument("--targets", nargs="*", default=["ara240", "rdk-x5"])
    parser.add_argument("--methods", nargs="*", default=["default"])
    parser.add_argument("--most-int16", nargs="*", type=float, default=[0.0, 0.1])
    parser.add_argument("--float", nargs="*", default=[])
    arguments = parser.parse_args()
    for name in arguments.models:
        measure(name, arguments)


if __name__ == "__main__":
    main()
