"""Long chains of nodes cost a verb what their length says: twice the nodes, twice the calls.

Calls of Python are counted, which are the same on every machine; no time is looked at.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from workspaces import REPO, few, lay_out_none

pytestmark = pytest.mark.slow
SHAPE = [1, 2, 4, 4]
LENGTHS = (64, 128, 256)
LINEAR = 2.4  # of the calls that are more: twice as many for twice as many nodes
KINDS = {
    "Identity": ("Identity",),
    "Relu": ("Relu",),
    "Add": ("Add",),
    "Conv": ("Conv",),
    "mixed": ("Conv", "Relu", "Add", "Identity"),
}
COUNT = """
import cProfile, io, pstats, sys
from contextlib import redirect_stdout
from npumake.cli.main import main

for words in sys.argv[1:]:
    profile = cProfile.Profile()
    with redirect_stdout(io.StringIO()), profile:
        code = main(words.split())
    assert code == 0, (words, code)
    print(pstats.Stats(profile).total_calls, file=sys.__stdout__, flush=True)
"""
VERBS = (
    "build",
    "why",
    "list",
    "show chain:rdk-x5/comparison",
    "show out/quantized.rdk-x5.onnx",
    "info out/chain.rdk-x5.hybrid",
    "perf out/chain.rdk-x5.hybrid",
    "perf .",
    "check .",
)


def chain(kind: str, length: int) -> onnx.ModelProto:
    """A model that gives what it is fed, but for the Relu."""
    weights = {"w": np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1)}
    weights |= {"up": np.array([0.5], np.float32), "down": np.array([-0.5], np.float32)}
    nodes, read = [], "x"
    for number in range(length):
        op_type = KINDS[kind][number % len(KINDS[kind])]
        more = {"Conv": ["w"], "Add": ["up" if number // len(KINDS[kind]) % 2 else "down"]}
        made = "y" if number == length - 1 else f"t{number}"
        inputs = [read, *more.get(op_type, [])]
        nodes.append(helper.make_node(op_type, inputs, [made], name=f"n{number}"))
        read = made
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPE) for n in "xy"]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def lay_out_chain(root: Path, kind: str, length: int) -> Path:
    project = lay_out_none(root, "chain").project
    project.mkdir()
    onnx.save(chain(kind, length), project / "model.onnx")
    (project / "project.yaml").write_text(
        "model: {path: model.onnx}\ndata: {x: {random: 8}}\n"
        "calibration: {method: max}\ntargets: [rdk-x5]\n"
    )
    return project


def calls(root: Path, kind: str, length: int) -> list[int]:
    """Of each verb, one after the other, in one process."""
    project = lay_out_chain(root, kind, length)
    variables = {"PYTHONPATH": str(REPO / "pipeline"), "NPUMAKE_CACHE": str(root / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *VERBS],
        cwd=project,
        env={**os.environ, **variables, "NPUMAKE_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [int(line) for line in done.stdout.splitlines() if line.isdigit()]


@pytest.mark.parametrize("kind", few(KINDS, lambda kind: kind == "mixed"))
def test_twice_the_nodes_are_twice_the_calls(kind: str, tmp_path: Path) -> None:
    counted = [calls(tmp_path / str(length), kind, length) for length in LENGTHS]
    for verb, short, middle, long in zip(VERBS, *counted, strict=True):
        least = short // 20  # of a verb that looks at no node
        more = max(long - middle, 0), max(middle - short, least)
        assert more[0] <= LINEAR * more[1], f"{verb}: {short}, {middle}, {long} calls"


@pytest.mark.parametrize("kind", few(["Identity"], lambda _: False))
def test_a_chain_of_twenty_thousand_builds(kind: str, tmp_path: Path) -> None:
    assert len(calls(tmp_path, kind, 20_000)) == len(VERBS)
