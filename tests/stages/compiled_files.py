"""A small network for every target whose file runs here, its compiled file, and its check."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from npumake.data.samples import Samples
from npumake.debug.compiled_check import CompiledCheck
from npumake.engine.lower import lowered
from npumake.graph import Graph, parse_text, shape
from npumake.project.sections import Calibration, ComparisonSettings, Security
from npumake.project.sections import Compile as CompileSection
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.compiled import Compiled, compiled
from npumake.stages.compiled_check import compiled_check
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target
from npumake.targets.target import Target

# Its images are as high as wide as deep: no shape tells how one lies.
CUBE = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 6, 6, 6] x) => (float[1, 6, 6, 6] y, float[1, 6] z) {
  [first] a = Conv<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(x, w1)
  [clamp] b = Relu(a)
  [second] c = Conv<kernel_shape=[1, 1]>(b, w2)
  [sum] y = Add(c, x)
  [pool] p = GlobalAveragePool(b)
  [flat] f = Flatten(p)
  [last] z = Gemm<transB=1>(f, w3)
}"""
LAYERS = ("first", "second", "last")


class Built(NamedTuple):
    real: Graph
    quantized: Graph
    target: Target
    file: Compiled


def cube() -> Graph:
    """CUBE with weights."""
    shapes = {"w1": (6, 6, 3, 3), "w2": (6, 6, 1, 1), "w3": (6, 6)}
    return with_weights(CUBE, shapes)


def with_weights(text: str, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The graph of a text that reads weights of these shapes: normal numbers."""
    draw = np.random.default_rng(3)
    made = {name: draw.normal(0, 0.4, size).astype(np.float32) for name, size in shapes.items()}
    lists = [
        f"float[{', '.join(map(str, w.shape))}] {name} = {{{', '.join(map(str, w.reshape(-1)))}}}"
        for name, w in made.items()
    ]
    head, _, body = text.partition("{")
    return parse_text(f"{head}<{', '.join(lists)}> {{{body}").with_shapes()


def samples_of(graph: Graph, count: int = 12) -> Samples:
    draw = np.random.default_rng(1)
    feeds = [
        {str(v.name): draw.normal(size=shape(v)).astype(np.float32) for v in graph.inputs}
        for _ in range(count)
    ]
    return Samples(tuple(f"sample {index}" for index in range(count)), feeds.__getitem__)


def built(graph: Graph, chip: str, fed: Samples | None = None) -> Built:
    target = read_target(chip)
    measured = observe(graph, fed or samples_of(graph))
    recipe = ranges_by_method(graph, measured, Calibration("max"), target.activations.symmetric)
    made = quantized(calibrated_with(graph, recipe, target, DEFAULT), target)
    return Built(graph, made, target, compiled(made, target, CompileSection(), Security()))


@cache
def built_cube(chip: str) -> Built:
    return built(cube(), chip)


def check(
    made: Built,
    data: bytes | None = None,
    fed: Samples | None = None,
    asked: ComparisonSettings = ComparisonSettings(3),  # noqa: B008  # frozen
) -> CompiledCheck:
    """The stage, on the file or on `data` in its place."""
    file = made.file if data is None else Compiled(data)
    given = samples_of(made.real) if fed is None else fed
    return compiled_check(made.real, given, made.quantized, file, made.target, asked)


def program_of(made: Built):
    return lowered(made.quantized, made.target.rounding, made.target.runnable)
