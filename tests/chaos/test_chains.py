"""Long chains of nodes cost a verb what their length says: twice the nodes, twice the calls.

Calls of Python are counted, of each function by itself: a walk over all nodes for each node is
quadratic long before it is most of a build. Counts are the same on every machine; no time is looked
at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from forks import run_python
from workspaces import few, lay_out_none

pytestmark = pytest.mark.slow
SHAPE = [1, 2, 4, 4]
WARM, LENGTHS = 12, (30, 60, 120)
LINEAR = 2.4  # of the calls that are more: twice as many for twice as many nodes
CHANCE = 3.0  # calls per node: caches of texts, and searches that end early
MANY = 20  # calls that most of a build makes anyway vary by one in so many
KINDS: Mapping[str, tuple[str, ...]] = {
    "Identity": ("Identity",),
    "Relu": ("Relu",),
    "Sigmoid": ("Sigmoid",),
    "Add": ("Add",),
    "Mul": ("Mul",),
    "Conv": ("Conv",),
    "MatMul": ("MatMul",),
    "MaxPool": ("MaxPool",),
    "Clip": ("Clip",),
    "BatchNormalization": ("Conv", "BatchNormalization"),
    "Transpose": ("Transpose",),
    "turned": ("Transpose", "Relu"),
    "halves": ("Split", "Concat"),
    "residual": ("Conv", "Relu", "Sum"),
    "mixed": ("Conv", "Relu", "Split", "Concat", "Sum", "Identity"),
    "zeros": ("Conv", "Relu"),  # behind a product with zero
}
CONSTANTS = {
    "weight": np.eye(2).reshape(2, 2, 1, 1),
    "square": np.eye(4),
    "half": np.array([0.5]),
    "minus": np.array([-0.5]),
    "gain": np.array([1.01]),
    "zero": np.zeros(1),
    "one": np.ones(2),
    "none": np.zeros(2),
    "low": np.array(-3.0),
    "high": np.array(3.0),
}
OPERANDS: Mapping[str, tuple[str, ...]] = {
    "BatchNormalization": ("one", "none", "none", "one"),
    "Clip": ("low", "high"),
    "Conv": ("weight",),
    "MatMul": ("square",),
    "Mul": ("gain",),
    "Split": ("sizes",),
}
ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "Concat": {"axis": 1},
    "MaxPool": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "Split": {"axis": 1},
    "Transpose": {"perm": [0, 1, 3, 2]},
}
COUNT = """
import cProfile, io, json, os, pstats, sys
from contextlib import redirect_stdout
from npumake.cli.main import main

for folder in json.loads(sys.argv[1]):
    os.chdir(folder)
    for words in sys.argv[2:]:
        profile = cProfile.Profile()
        with redirect_stdout(io.StringIO()), profile:
            code = main(words.split())
        assert code == 0, (folder, words, code)
        calls = {}
        for (file, line, name), (_, count, *_) in pstats.Stats(profile).stats.items():
            name = f"{file}:{line} {name.partition(' at 0x')[0]}"
            calls[name] = calls.get(name, 0) + count
        print(json.dumps(calls), file=sys.__stdout__, flush=True)
"""
VERBS = (
    "build",
    "why",
    "list",
    "show chain:rdk-x5/comparison",
    "show out/quantized.rdk-x5.onnx",
    "diff out/calibrated.rdk-x5.onnx out/quantized.rdk-x5.onnx",
    "info out/chain.rdk-x5.hybrid",
    "perf out/chain.rdk-x5.hybrid",
    "perf .",
    "check .",
)
Calls = Mapping[str, int]


def nodes_of(kind: str, length: int) -> Iterator[NodeProto]:
    """A chain that reads x and gives y. Names are of one length, as their texts are cached."""
    block, read, before = KINDS[kind], ["x"], "x"
    if kind == "zeros":
        yield helper.make_node("Mul", ["x", "zero"], ["first"], name="first")
        read = ["first"]
    for number in range(length):
        op_type = block[number % len(block)]
        if op_type == block[0]:
            before = read[0]
        operands = OPERANDS.get(op_type, ())
        if op_type == "Add":
            operands = ("minus" if number // len(block) % 2 else "half",)
        if op_type == "Sum":
            op_type, operands = "Add", (before,)
        ends = ("l", "r") if op_type == "Split" else ("t",)
        made = ["y"] if number == length - 1 else [f"{end}{number:05}" for end in ends]
        more = ATTRIBUTES.get(op_type, {})
        yield helper.make_node(
            op_type, [*reversed(read), *operands], made, name=f"n{number:05}", **more
        )
        read = made


def chain(kind: str, length: int) -> onnx.ModelProto:
    nodes = list(nodes_of(kind, length - length % len(KINDS[kind])))
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPE) for n in "xy"]
    constants = {name: array.astype(np.float32) for name, array in CONSTANTS.items()}
    read = {name for node in nodes for name in node.input}
    held = [
        numpy_helper.from_array(array, name)
        for name, array in {**constants, "sizes": np.array([1, 1])}.items()
        if name in read
    ]
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


def calls(root: Path, kind: str, lengths: tuple[int, ...]) -> list[list[Calls]]:
    """By length and verb, the calls of each function, one after the other in one process."""
    projects = [lay_out_chain(root / str(length), kind, length) for length in lengths]
    variables = {"NPUMAKE_CACHE": str(root / "cache"), "NPUMAKE_THREADS": "1"}
    done = run_python(
        *("-c", COUNT, json.dumps(list(map(str, projects))), *VERBS),
        folder=root,
        environment={**os.environ, **variables},
    )
    done.check_returncode()
    counted = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [counted[i : i + len(VERBS)] for i in range(0, len(counted), len(VERBS))]


def faster_than_the_chain(short: Calls, middle: Calls, long: Calls) -> Iterator[str]:
    """The functions whose calls grow faster than the number of nodes."""
    chance = CHANCE * LENGTHS[-1]
    for name in middle.keys() & long.keys():  # others are of a first import
        first, second, third = (counted.get(name, 0) for counted in (short, middle, long))
        if third - second > LINEAR * max(second - first, 0) + chance + third / MANY:
            yield f"{name}: {first}, {second}, {third} calls"


@pytest.mark.parametrize("kind", few(KINDS, lambda kind: kind == "mixed"))
def test_twice_the_nodes_are_twice_the_calls_of_every_function(kind: str, tmp_path: Path) -> None:
    _, *counted = calls(tmp_path, kind, (WARM, *LENGTHS))
    faster = [
        f"{verb}: {text}"
        for verb, *three in zip(VERBS, *counted, strict=True)
        for text in faster_than_the_chain(*three)
    ]
    assert not faster


def test_a_walk_for_each_node_is_faster_than_the_chain() -> None:
    walks, once = ({"walk": n * n // 8} for n in LENGTHS), ({"walk": 30 * n} for n in LENGTHS)
    assert list(faster_than_the_chain(*walks))
    assert not list(faster_than_the_chain(*once))


@pytest.mark.parametrize("kind", few(["Identity"], lambda _: False))
def test_a_chain_of_twenty_thousand_builds(kind: str, tmp_path: Path) -> None:
    (counted,) = calls(tmp_path, kind, (20_000,))
    assert len(counted) == len(VERBS)
