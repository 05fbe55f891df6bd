"""Blocks of today's networks at real size: floats are kept, int8 is not behind, files are right.

Right files are those that the build's own check passes. A file that is not made is refused by an
error that names a node. CI draws two pairs of a block and a target; NPUMAKE_EVERY=1 has them all.
"""

from __future__ import annotations

import os
import re
import sys
from itertools import product

import numpy as np
import onnx
import pytest

from blocks.net import Block
from blocks.peer import errors
from blocks.projects import SLACK, Judged, Project
from blocks.table import AHEAD, BLOCKS, TARGETS
from draws import drawn, label
from npumake.errors import GraphError

DRAWN = 2
OPENVINO = "NPUMAKE_OPENVINO_PYTHON"
NEEDED = {
    "ethos-u55-128": ("ai_edge_litert", "ethosu"),
    "iree-cpu": ("iree.compiler", "iree.runtime"),
    "openvino-cpu": () if OPENVINO in os.environ else ("openvino",),
    "tflite": ("ai_edge_litert",),
}


@pytest.mark.slow(cases=DRAWN)
@pytest.mark.parametrize(
    ("name", "target"), drawn(list(product(BLOCKS, TARGETS)), DRAWN), ids=label
)
def test_a_block_is_right_for_a_target(name, target, tmp_path, monkeypatch):
    for module in NEEDED.get(target, ()):
        pytest.importorskip(module, reason=f"{module} is not installed")
    if OPENVINO not in os.environ:  # it has an interpreter of its own; in CI it is this one
        monkeypatch.setenv(OPENVINO, sys.executable)
    project = Project(tmp_path / "projects" / name, BLOCKS[name]())
    project.write([target])
    judged = project.judged(target)
    assert judged.float_errors() == {}
    assert judged.outputs_behind(AHEAD.get((name, target), SLACK)) == {}
    if judged.refusal is not None:
        assert not judged.is_compiled, judged.refusal
        assert names_in(judged.refusal, project.block.model), judged.refusal


def names_in(refusal: Exception, model: bytes) -> set[str]:
    """The nodes of the model that an error names in backquotes."""
    nodes = onnx.load_from_string(model).graph.node
    words = {*re.findall(r"`([^`]+)`", str(refusal))}
    return {node.name for node in nodes if node.name in words}


def test_the_judge_finds_a_float_stage_that_moved_and_an_output_behind():
    refusal = GraphError("nothing")
    floats = {"original_float": 0.0, "optimized_float": 2e-5}
    judged = Judged(floats, [0.1, 0.1, 0.004], [0.1, 0.08, 0.001], False, refusal)
    assert judged.float_errors() == {"optimized_float": 2e-5}
    assert judged.outputs_behind() == {1: (0.1, 0.08)}
    assert Judged({"original_float": np.nan}, [np.nan], [0.1], True).float_errors() != {}
    assert Judged({}, [np.nan], [0.1], True).outputs_behind() != {}


def test_an_error_is_relative_to_the_spread_of_each_compared_output():
    block = Block(b"", (), (), compared=lambda found: [found[0][:, :2], found[0][:, 2:]])
    meant = [[np.array([[0.0, 2.0, 5.0, 7.0]])]]
    found = [[np.array([[0.0, 2.0, 5.5, 7.5]])]]
    assert errors(block, found, meant) == [0.0, 0.5]
