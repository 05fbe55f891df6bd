"""Compiles every model of the shared data for every target with a real compiler.

    NPUMAKE_SHARED=../shared python benchmarks/compilers.py [--models mobilenet] [--targets tflite]

Each model is imported, optimized, checked, calibrated on noise unless it has grids, quantized,
lowered and compiled. The table has the operators in float (tflite, IREE) or on the CPU (Vela), the
seconds from the optimized graph on, and for `tflite` the layers that have the same codes in
LiteRT's reference kernels as in our reference engine.

Measured on two busy cores, for 11 sizes of Ethos-U, 3 processors of IREE, and tflite. No model was
refused. The last two are .pb files, read by TensorFlow in an environment of its own.

    model                       Ethos-U: CPU, s     IREE: float, s      layers equal in LiteRT
    ad01                         0    0.3 to 0.4     0    2 to 3        10 of 10
    kws_tiny float, int8         0    0.2 to 0.4     0    2 to 3        12 of 12, 12 of 12
    silero_vad                  37    0.3 to 0.5    33    3 to 4        12 of 12
      its LSTM unrolled         13    4.7                               28 of 28
    resnet8 float, int8          0    0.3 to 0.7     0    4 to 7        15 of 15, 15 of 15
    mnist_cntk                   0    0.3 to 0.5     0    2             5 of 5
    mobilenet float, quant       0    0.5 to 0.6     0    7 to 14       30 of 30, 30 of 30
    squeezenet fp16, fp32        0    1.1 to 2.5     0    16 to 40      47 of 47, 47 of 47
    vww float, int8              0    0.5 to 2.0     0    11 to 25      30 of 30, 30 of 30
    mtcnn det1, det2             0    0.5 to 1.1     0    4 to 8        10 of 10, 13 of 13
    ultraface, Caffe             5    1.4 to 1.9     1    18 to 32      47 of 47
    ultraface, raw heads         5    1.5 to 3.7     1    33 to 84      47 of 47
    ultraface                    3    1.3 to 5.8     1    42 to 63      75 of 75
    fastestdet                4, 30   1.2 to 2.4     1    30 to 53      147 of 147
    yolov5tiny face              9    1.8 to 2.5     4    72 to 100     145 of 145
    yolox_person                30    3.0 to 8.1    20    80 to 400     373 of 373
    yunet                        0    4.8 to 8.4     0    108 to 140    79 of 79
    ppocr cls                    0    3.4 to 7.6     0    140 to 175    109 of 109
    deeplab                      1    5.2 to 11      0    190 to 222    71 of 71
    ESPCN                        4    0.3 to 0.4     1    2 to 3        6 of 6
    kws_arm_DS_CNN_S             2    0.3 to 0.4     1    3 to 4        13 of 13
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

from npumake.bundle.program import Program
from npumake.compilers.adapters.adapter import ADAPTERS
from npumake.compilers.backends import BACKENDS, model_for
from npumake.compilers.flatfile import written
from npumake.compilers.tflite import tflite_file
from npumake.compilers.vela import ESTIMATE
from npumake.debug.layer_by_layer import beside_litert
from npumake.debug.model_check import check_model
from npumake.digest import of_file
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.errors import PipelineError
from npumake.frontends import FRONTENDS, read_model
from npumake.frontends.tflite.schema import read_network
from npumake.graph import Graph, dtype, open_dimensions, shape, upgraded
from npumake.passes import optimized
from npumake.project.files import SourceFile
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.brought_grids import carries_grids, with_own_grids
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target, target_names
from npumake.targets.target import Target

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
SIZES: Mapping[str, Mapping[str, tuple[int, ...]]] = {  # where a model leaves dimensions open
    "ESPCN_x2": {"IteratorGetNext": (1, 24, 32, 1)},
    "ppocr_mobile_v2_cls": {"x": (1, 3, 48, 192)},
    "silero_vad_16k_op15": {"input": (1, 576), "state": (2, 1, 128)},
}


HERE = BACKENDS.keys() - ADAPTERS.keys()  # what needs no other interpreter


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
    recipe = ranges_by_method(
        graph, observe(graph, [fed]), calibration, target.activations.symmetric
    )
    return quantized(calibrated_with(graph, recipe, target, DEFAULT), target)


def cell(graph: Graph, fed: Feeds, target: Target) -> Cell:
    started = time.perf_counter()
    try:
        check_model(graph, target)
        found = on_grids(graph, fed, target)
        program = lowered(found, target.rounding, target.runnable)
        model = tflite_file(program, found)
        spelled = written(*model_for(target.backend, program, found))
        _, told = BACKENDS[target.backend](spelled, target)
    except PipelineError as error:
        return Cell(0, time.perf_counter() - started, why=str(error))
    seconds = time.perf_counter() - started
    left = json.loads(told[ESTIMATE])["operators"]["cpu"] if ESTIMATE in told else in_float(model)
    return Cell(left, seconds, same(program, model, fed) if target.backend == "tflite" else "")


def in_float(model: bytes) -> int:
    """Operators, those at a border between codes and real numbers aside."""
    drawn = [o for o in read_network(model).operators if o.type not in ("DEQUANTIZE", "QUANTIZE")]
    return sum(each.output.dtype == "float32" for each in drawn)


def same(program: Program, model: bytes, fed: Feeds) -> str:
    compared, wrong = beside_litert(program, model, fed)
    return f"{compared - len(wrong)}/{compared} layers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="", metavar="PART", help="of the name of the file")
    parser.add_argument("--targets", nargs="*")
    given = parser.parse_args()
    every = [read_target(name) for name in given.targets or target_names()]
    targets = [target for target in every if target.backend in HERE]
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
