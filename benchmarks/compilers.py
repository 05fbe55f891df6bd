"""Every model of the shared data, for every target that a real compiler makes the file of.

    NPUMAKE_SHARED=../shared python benchmarks/compilers.py [--models mobilenet] [--targets tflite]

Each is imported, optimized, checked, calibrated on noise of its own shape where it carries no
grids, quantized, lowered and compiled. Of each file: the nodes that stay in float (tflite, IREE) or
that Vela leaves to the CPU, the seconds from the optimized graph on and, for `tflite`, how many
layers have in LiteRT's reference kernels the codes of our reference engine, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.bundle.program import Program
from pipeline.compilers.backends import BACKENDS
from pipeline.compilers.tflite import tflite_file
from pipeline.compilers.vela import ESTIMATE
from pipeline.debug.checked import checked
from pipeline.debug.layer_by_layer import beside_litert
from pipeline.digest import of_file
from pipeline.engine.lower import lowered
from pipeline.engine.ort import Feeds
from pipeline.errors import PipelineError
from pipeline.frontends import FRONTENDS, read_model
from pipeline.graph import Graph, dtype, open_dimensions, shape, upgraded
from pipeline.passes import optimized
from pipeline.project.files import SourceFile
from pipeline.project.sections import Calibration
from pipeline.quant.loaded import carries_grids, with_own_grids
from pipeline.quant.observe import observe
from pipeline.quant.qdq import DEFAULT
from pipeline.quant.search import calibrated_with, plain
from pipeline.stages.quantized import quantized
from pipeline.targets.reader import read_target, target_names
from pipeline.targets.target import Target

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
SIZES: Mapping[str, Mapping[str, tuple[int, ...]]] = {  # where a model leaves dimensions open
    "ESPCN_x2": {"IteratorGetNext": (1, 24, 32, 1)},
    "ppocr_mobile_v2_cls": {"x": (1, 3, 48, 192)},
    "silero_vad_16k_op15": {"input": (1, 576), "state": (2, 1, 128)},
}


class Cell(NamedTuple):
    """One model for one target: what went wrong, or None."""

    on_cpu: int
    seconds: float
    layers: str = ""
    why: str | None = None

    def __str__(self) -> str:
        return "refused" if self.why else f"{self.on_cpu} cpu {self.seconds:6.1f} s {self.layers}"


def models(wanted: str) -> Iterator[Path]:
    for file in sorted(SHARED.joinpath("models").rglob("*")):
        if file.suffix in FRONTENDS and wanted in file.stem:
            yield file


def graph_of(file: Path) -> Graph:
    beside = [each for each in [file.with_suffix(".caffemodel")] if each.is_file()]
    held = [SourceFile(each.name, str(each), of_file(each)) for each in beside]
    graph = read_model(file.read_bytes(), file.name, held)
    for value in graph.inputs:
        if open_dimensions(value):
            graph.set_input_shape(value, SIZES[file.stem][str(value.name)])
    return optimized(upgraded(graph).with_shapes())


def noise(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    drawn = {str(v.name): rng.normal(size=shape(v)).astype(dtype(v)) for v in graph.inputs}
    return drawn | ({"sr": np.array(16000)} if "sr" in drawn else {})


def on_grids(graph: Graph, fed: Feeds, target: Target) -> Graph:
    if carries_grids(graph):
        return quantized(with_own_grids(graph, target, DEFAULT), target)
    calibration = Calibration("max")
    recipe = plain(graph, observe(graph, [fed]), calibration, target.activations.symmetric)
    return quantized(calibrated_with(graph, recipe, target, DEFAULT), target)


def cell(graph: Graph, fed: Feeds, target: Target) -> Cell:
    started = time.perf_counter()
    try:
        checked(graph, target)
        found = on_grids(graph, fed, target)
        program = lowered(found, target.rounding, target.runnable)
        model = tflite_file(program, found)
        _, told = BACKENDS[target.backend](model, target)
    except PipelineError as error:
        return Cell(0, time.perf_counter() - started, why=str(error))
    seconds = time.perf_counter() - started
    in_float = sum(step.op == "onnx" for step in program.instructions)
    left = json.loads(told[ESTIMATE])["operators"]["cpu"] if ESTIMATE in told else in_float
    return Cell(left, seconds, same(program, model, fed) if target.backend == "tflite" else "")


def same(program: Program, model: bytes, fed: Feeds) -> str:
    compared, wrong = beside_litert(program, model, fed)
    return f"{compared - len(wrong)}/{compared} layers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="", metavar="PART", help="of the name of the file")
    parser.add_argument("--targets", nargs="*")
    given = parser.parse_args()
    every = [read_target(name) for name in given.targets or target_names()]
    targets = [target for target in every if target.backend != "hybrid"]
    for file in models(given.models):
        try:
            graph = graph_of(file)
        except PipelineError as error:
            print(f"{file.stem:40} is not read: {error}", flush=True)
            continue
        fed = noise(graph)
        for target in targets:
            made = cell(graph, fed, target)
            print(f"{file.stem:40} {target.name:16} {made}", flush=True)
            if made.why:
                print(f"    {made.why}", flush=True)


if __name__ == "__main__":
    main()
