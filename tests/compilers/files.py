"""Quantized real models, their programs and files, and whether LiteRT computes the same codes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import pytest

from frontends.test_every_real_model import feeds, graphs
from npumake.bundle.program import Program
from npumake.compilers.tflite import tflite_file
from npumake.debug.layer_by_layer import beside_litert
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.graph import Graph
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.brought_grids import carries_grids, with_own_grids
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target
from workspaces import shared_data

MODELS = shared_data() / "models"


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
        recipe = ranges_by_method(graph, observe(graph, [fed]), Calibration("max"), symmetric=False)
        found = quantized(calibrated_with(graph, recipe, target, asked), target)
    program = lowered(found, target.rounding, target.runnable)
    return Made(found, program, tflite_file(program, found), fed)


@cache
def made(model: str) -> Made:
    """Of the file below shared/data/models."""
    graph = graphs(MODELS / model)[1]
    return made_of(graph, feeds(graph))


def differences(made: Made) -> tuple[int, Mapping[str, int]]:
    """How many tensors were compared, and by how many codes those differ that do, by name."""
    pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    return beside_litert(made.program, made.data, made.fed)
