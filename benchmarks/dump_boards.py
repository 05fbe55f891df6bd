"""Dumps of LiteRT and IREE: every tensor that a runtime computes of a real model's file.

A board is one model in one width on one runtime, with its integer program, its samples, and the
dump of the first sample.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from faults import feeds, float_graph

from npumake.bundle.program import Program
from npumake.compilers.backends import built
from npumake.compilers.tflite import tflite_file
from npumake.data.samples import Samples
from npumake.debug.layer_by_layer import _codes_of, litert_tensors
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.brought_grids import carries_grids, with_own_grids
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.runtime.iree import IreeSession
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

MODELS = (
    "classification/mobilenet_v1_0.25_224_float.tflite",
    "classification/cifar10_resnet8_float.tflite",
    "classification/vww_96_int8.tflite",
    "audio/kws_tiny_float.tflite",
    "detection/yolox_person_192.onnx",
)
IREE_MODELS = MODELS[1:3]
SAMPLES = 4
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Board:
    """A runtime's own tensors of one sample, by the names of its file."""

    model: str
    types: str
    runtime: str
    program: Program
    graph: Graph
    samples: Samples
    dump: Mapping[str, np.ndarray]


@cache
def prepared(model: str, types: str) -> tuple[Graph, Program, Samples]:
    """The quantized graph, its integer program, and its samples."""
    target = read_target("tflite")
    graph = float_graph(model)
    samples = feeds(model, graph)[:SAMPLES]
    quantization = Quantization(types={"*": "int16"} if types == "int16" else {})
    if carries_grids(graph) and types == "int8":
        on_grids = with_own_grids(graph, target, quantization)
    else:
        recipe = ranges_by_method(
            graph, observe(graph, samples), Calibration("max"), symmetric=types == "int16"
        )
        on_grids = calibrated_with(graph, recipe, target, quantization)
    integer_graph = quantized(on_grids, target)
    program = lowered(integer_graph, target.rounding, target.runnable)
    names = tuple(f"{index}.npy" for index in range(len(samples)))
    return integer_graph, program, Samples(names, samples.__getitem__)


@cache
def board(model: str, types: str, runtime: str) -> Board:
    graph, program, samples = prepared(model, types)
    make = by_litert if runtime == "litert" else by_iree
    dump = make(program, graph, samples.read(0))
    return Board(model, types, runtime, program, graph, samples, dump)


def by_litert(program: Program, graph: Graph, fed: Mapping[str, np.ndarray]) -> Arrays:
    """Every tensor of the file, constants among them."""
    names = [name for step in program.instructions for name in step.outputs]
    ours = dict(zip(names, ReferenceSession(program).run(names, fed), strict=True))
    codes = {name: ours.get(_codes_of(program, name), fed[name]) for name in fed}
    return litert_tensors(tflite_file(program, graph), codes, fed)


def by_iree(program: Program, graph: Graph, fed: Mapping[str, np.ndarray]) -> Arrays:
    """The quantized tensors, each exposed as an output of the file."""
    inner = [s.outputs[0] for s in program.instructions if _is_inner(s.outputs[0], program)]
    watched = replace(program, outputs=(*program.outputs, *inner))
    data = built(watched, graph, read_target("iree-cpu"), {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.vmfb")
        path.write_bytes(data)
        session = IreeSession(path)
        arrays = {p.name: _in_layout(fed[p.name], p.shape) for p in session.inputs}
        codes = session._run(*(port.codes(arrays[port.name]) for port in session._inputs))
        return {
            port.name: np.array(values.to_host())
            for port, values in zip(session._outputs, codes, strict=True)
        }


def _in_layout(x: np.ndarray, shape: Sequence[int | str | None]) -> np.ndarray:
    return x if x.shape == tuple(shape) else np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def _is_inner(name: str, program: Program) -> bool:
    shown = {step.inputs[0] for step in program.instructions if step.op == "dequantize"}
    fed = {step.outputs[0] for step in program.instructions if step.op in ("quantize", "onnx")}
    grid = program.tensors[name]
    return grid.scale is not None and name not in shown | fed and name not in program.outputs


def boards(models: tuple[str, ...], runtimes: list[str]) -> Iterator[Board]:
    for model in models:
        for types in ("int8", "int16") if "litert" in runtimes else ():
            if (model, types) != (MODELS[4], "int16"):
                yield board(model, types, "litert")
        if "iree" in runtimes and model in IREE_MODELS:
            yield board(model, "int8", "iree")
