"""Published figures of models on bayes-e, and the programs they belong to.

Compiler figures are those printed by hb_mapper 1.24.3 (`perf` of ../shared/oracle/tables), for the
same graphs with random weights, fed nv12. A table with several subgraphs is from the checker, which
compiles without optimization, and is left out. Board figures are D-Robotics', one thread, 224 x
224.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from classifiers import CLASSIFIERS, classifier

from npumake.bundle.program import Program
from npumake.cli.sketch import NO_SAMPLES
from npumake.digest import of_file
from npumake.engine.lower import lowered
from npumake.frontends import read_model
from npumake.graph import shape
from npumake.project.files import SourceFile
from npumake.project.paths import FilePath
from npumake.project.sections import Calibration, Input, ModelSection
from npumake.quant.calibration.observe import observe
from npumake.quant.search.methods import ranges_by_method
from npumake.stages.calibrated import calibrated
from npumake.stages.optimized_float import optimized_float
from npumake.stages.original_float import original_float
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

REPO = Path(__file__).resolve().parents[1]
ORACLE = Path(os.environ.get("NPUMAKE_SHARED", REPO.parent / "shared")) / "oracle"
TARGET = "rdk-x5"
NV12 = Input(type="rgb", fed_type="nv12", scale=1 / 255)
# Milliseconds. The graphs of the others of the list are not simple enough to be built here, or
# have nodes on the CPU.
BOARD = {
    "resnet18": 2.95,
    "mobilenetv1": 1.27,
    "mobilenetv2": 1.42,
    "googlenet": 2.19,
    "fasternet_t0": 1.41,
    "repghostnet_100": 1.55,
}


@dataclass(frozen=True, eq=False)
class Known:
    """A program with what was published: seconds, and of the compiler's figures bytes per frame."""

    name: str
    program: Program
    seconds: float
    ddr: int | None  # None: measured on the board, which tells no bytes

    @property
    def on_board(self) -> bool:
        return self.ddr is None


def known() -> Iterator[Known]:
    """By name, the compiler's figures first. Only the board's where the tables are not here."""
    for table in sorted((ORACLE / "tables").glob("*.json")):
        document = json.loads(table.read_bytes())
        if document["march"] != "bayes-e" or len(document["perf"]) != 1:
            continue
        [perf] = document["perf"]
        model = gzip.decompress((ORACLE / "models" / f"{table.stem}.onnx.gz").read_bytes())
        program = program_of(model, table.stem)
        yield Known(table.stem, program, perf["latency_us"] * 1e-6, perf["ddr_bytes"])
    for name in sorted(CLASSIFIERS):
        program = program_of(classifier(name).to_bytes(), name)
        yield Known(name, program, BOARD[name] * 1e-3, None)


def program_of(model: bytes, name: str) -> Program:
    """Of an ONNX model of one picture, fed nv12, quantized on one sample of noise."""
    target = read_target(TARGET)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.onnx"
        file.write_bytes(model)
        source = SourceFile(file.name, str(file), of_file(file))
        names = {"model.path": (source,)}
        [fed] = read_model(model, file.name).inputs
        inputs = {str(fed.name): NV12}
        real = optimized_float(original_float(ModelSection(FilePath(file.name)), inputs, names))
    noise = np.random.default_rng(0)
    sample = {
        str(value.name): noise.uniform(-128, 127, shape(value)).astype(np.float32)
        for value in real.inputs
    }
    recipe = ranges_by_method(real, observe(real, [sample]), Calibration("max"), symmetric=True)
    made = quantized(calibrated(real, recipe, NO_SAMPLES, target), target)
    return lowered(made, target.rounding, target.runnable)
