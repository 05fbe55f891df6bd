"""Quantized real models, their programs, and what LiteRT makes of every tensor of their files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pytest
from frontends.test_every_real_model import feeds, graphs
from workspaces import shared_data

from pipeline.bundle.program import Program
from pipeline.compilers.tflite import tflite_file
from pipeline.engine.lower import lowered
from pipeline.engine.ort import Feeds
from pipeline.engine.reference import ReferenceSession
from pipeline.graph import Graph
from pipeline.project.sections import Calibration, Quantization
from pipeline.quant.loaded import carries_grids, with_own_grids
from pipeline.quant.observe import observe
from pipeline.quant.qdq import DEFAULT
from pipeline.quant.search import calibrated_with, plain
from pipeline.stages.quantized import quantized
from pipeline.targets.reader import read_target

MODELS = shared_data() / "models"
CODES = (np.int8, np.int16)


class Made(NamedTuple):
    graph: Graph
    program: Program
    data: bytes
    fed: Feeds


def made_of(graph: Graph, fed: Feeds, asked: Quantization = DEFAULT) -> Made:
    """The graph for `tflite`: calibrated on what it is fed where it carries no grids."""
    target = read_target("tflite")
    if carries_grids(graph):
        found = quantized(with_own_grids(graph, target, asked), target)
    else:
        recipe = plain(graph, observe(graph, [fed]), Calibration("max"), symmetric=False)
        found = quantized(calibrated_with(graph, recipe, target, asked), target)
    program = lowered(found, target.rounding, target.runnable)
    return Made(found, program, tflite_file(program, found), fed)


@cache
def made(model: str) -> Made:
    """Of the file below shared/data/models."""
    graph = graphs(MODELS / model)[1]
    return made_of(graph, feeds(graph))


def in_litert(data: bytes, codes: Mapping[str, np.ndarray], fed: Feeds) -> dict[str, np.ndarray]:
    """Every tensor of the file by name, by the reference kernels; its inputs by name, codes or
    real numbers as the file takes them."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    interpreter = litert.Interpreter(
        model_content=data,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        given = (codes if detail["dtype"] in CODES else fed)[detail["name"]]
        laid = given if same_shape(given, detail) else given.transpose(0, 2, 3, 1)
        interpreter.set_tensor(detail["index"], np.ascontiguousarray(laid))
    interpreter.invoke()
    found = {}
    for detail in interpreter.get_tensor_details():
        if detail["name"] and detail["dtype"] is not np.object_:
            found[detail["name"]] = interpreter.get_tensor(detail["index"])
    return found


def same_shape(values: np.ndarray, detail: Mapping[str, np.ndarray]) -> bool:
    return list(values.shape) == detail["shape"].tolist()


def differences(made: Made) -> tuple[int, dict[str, int]]:
    """How many tensors were compared, and by how many codes those differ that do, by name."""
    names = [name for step in made.program.instructions for name in step.outputs]
    ours = dict(zip(names, ReferenceSession(made.program).run(names, made.fed), strict=True))
    codes = {name: ours.get(_codes_of(made.program, name), made.fed[name]) for name in made.fed}
    theirs, compared, wrong = in_litert(made.data, codes, made.fed), 0, {}
    shown = {s.outputs[0]: s.inputs[0] for s in made.program.instructions if s.op == "dequantize"}
    for name, values in theirs.items():
        wanted = ours.get(shown.get(name, name) if values.dtype in CODES else name)
        if wanted is None or wanted.dtype != values.dtype or values.dtype not in CODES:
            continue
        compared += 1
        off = min(
            int(np.abs(wanted.transpose(order).astype(int) - values).max())
            for order in permutations(range(wanted.ndim))
            if wanted.transpose(order).shape == values.shape
        )
        wrong |= {name: off} if off else {}
    return compared, wrong


def _codes_of(program: Program, name: str) -> str:
    """The codes of an input, behind a Transpose or not."""
    for step in program.instructions:
        if name in step.inputs:
            made = step.outputs[0]
            return made if step.op == "quantize" else _codes_of(program, made)
    return name
