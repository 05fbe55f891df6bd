"""Dumps of LiteRT and IREE: every tensor that a runtime computes of a real model's file.

A board is one model in one width on one runtime, with its integer program, its samples, and the
dump of the first sample.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from dump_blocks import BLOCKS, blocks, pictures
from faults import feeds, float_graph

from npumake.bundle.program import Program
from npumake.cli.precision_target import bring_up, place_of
from npumake.compilers.backends import built
from npumake.compilers.tflite import tflite_file
from npumake.data.samples import Samples
from npumake.debug.layer_by_layer import _codes_of, litert_tensors
from npumake.engine.exact import ExactSession
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
ROOT = Path(__file__).parents[1]
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Board:
    """A runtime's own tensors of one sample, by the names of its file."""

    model: str
    types: str
    runtime: str
    program: Program
    graph: Graph
    samples: Samples
    dump: Mapping[str, np.ndarray]
    is_last: bool = True  # whether images are channels last in the dump
    narrow: Mapping[str, np.ndarray] | None = None  # the dump of the same model in int8


@cache
def prepared(model: str, types: str, chip: str = "tflite") -> tuple[Graph, Program, Samples]:
    """The quantized graph, its integer program, and its samples."""
    target = read_target(chip)
    graph = blocks() if model == BLOCKS else float_graph(model)
    samples = pictures(SAMPLES) if model == BLOCKS else feeds(model, graph)[:SAMPLES]
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


@cache
def exact_board(model: str, types: str, chip: str = "tflite") -> Board:
    """A board that computes as ours: a project of this repository, or a model of shared/data."""
    if model in (BLOCKS, *MODELS):
        graph, program, samples = prepared(model, types, chip)
    else:
        graph, program, samples = project(model, types, chip)
    is_last = (len(model) + len(chip)) % 2 == 0
    dump = _inner(program, samples, is_last)
    narrow = None
    if types == "int16":
        other = exact_board(model, "int8", chip)
        narrow = _inner(other.program, samples, is_last)
        narrow = {name: x for name, x in narrow.items() if name in dump}
    return Board(model, types, chip, program, graph, samples, dump, is_last, narrow)


def _inner(program: Program, samples: Samples, is_last: bool) -> Arrays:
    """The tensors of a sample that a board writes: those with a grid, and the inputs."""
    tensors = program.tensors
    return {
        name: in_file(x, is_last)
        for name, x in tensors_of(program, samples.read(0)).items()
        if name in program.inputs or tensors[name].scale is not None
    }


def tensors_of(program: Program, fed: Mapping[str, np.ndarray]) -> Arrays:
    """Every tensor of the program, in our shape."""
    names = list(dict.fromkeys(n for step in program.instructions for n in step.outputs))
    values = ExactSession(program, watched=names).run(names, fed)
    return {**fed, **{n: np.asarray(x) for n, x in zip(names, values, strict=True)}}


def in_file(x: np.ndarray, is_last: bool) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if is_last and x.ndim == 4 else x


def project(path: str, types: str, chip: str) -> tuple[Graph, Program, Samples]:
    """The quantized graph of a project, its integer program, and its samples."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "project")
        shutil.copytree(ROOT / path, folder, ignore=shutil.ignore_patterns("out"))
        file = folder / "project.yaml"
        whole = "" if types == "int8" else 'quantization: {types: {"*": int16}}\n'
        text = re.sub(
            r"(?ms)^(targets|variants|report|quantization):.*?(?=^\w|\Z)", "", file.read_text()
        )
        file.write_text(f"{text}targets: [{chip}]\n{whole}")
        place = place_of(f"{folder}:{chip}", None)
        build, inputs = place.build, place.comparison.inputs
        nodes = {key: build.plan.node(inputs[key]) for key in ("quantized", "samples")}
        bring_up(build, {node.name for node in nodes.values()}, quiet=True)
        graph = Graph.load(build.artifact(nodes["quantized"]))
        stored = Samples.load(build.artifact(nodes["samples"])).subset(range(SAMPLES))
        fed = [dict(each) for each in stored]
        target = read_target(chip)
        program = lowered(graph, target.rounding, target.runnable)
        return graph, program, Samples(stored.names, fed.__getitem__)


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
