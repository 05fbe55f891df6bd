"""What a compiler fails at is named, in as few trials as halving takes."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.compilers import failing_node
from npumake.compilers.failing_node import located
from npumake.compilers.flatfile import FileOperator, FileTensor, FlatModel, written
from npumake.compilers.iree import tosa
from npumake.compilers.process import CompilerError, SlowError, refuse_failure
from npumake.compilers.tflite_builder import KINDS
from npumake.frontends.tflite.schema import read_network

SHAPE = (1, 6, 4)
LINE = ["RELU"] * 5 + ["TANH"] + ["RELU"] * 3 + ["NEG"] + ["RELU"] * 2


def chain(kinds=LINE) -> FlatModel:
    tensors = [FileTensor(f"t{number}", SHAPE, "float32") for number in range(len(kinds) + 1)]
    operators = [
        FileOperator(kind, (number,), (number + 1,), *KINDS[kind], node=f"{kind}_{number}")
        for number, kind in enumerate(kinds)
    ]
    return FlatModel(tensors, operators, [0], [len(kinds)])


def failing_at(*kinds, trials):
    """A compiler that fails where all of these are in one network."""

    def compiles(model):
        network = read_network(model)
        trials.append(len(network.operators))
        if {*kinds} <= {operator.type for operator in network.operators}:
            raise CompilerError("it fails with exit status 1")

    return compiles


@pytest.mark.parametrize(("kinds", "node"), [(["TANH"], "TANH_5"), (["NEG"], "NEG_9")])
def test_one_operator_is_named(kinds, node):
    trials = []
    found = located(CompilerError("it fails"), chain(), failing_at(*kinds, trials=trials))
    assert found.what == f"`{node}` cannot be compiled: it fails"
    assert sum(trials) <= 2 * len(LINE)


def test_operators_that_fail_together_are_named_from_the_first_to_the_last():
    found = located(CompilerError("no"), chain(), failing_at("TANH", "NEG", trials=[]))
    assert found.what == "the nodes from `TANH_5` to `NEG_9` cannot be compiled: no"


def test_where_every_trial_takes_long_all_nodes_are_told():
    def slow(model):
        raise SlowError("a compiler takes more than 30 s")

    found = located(CompilerError("no"), chain(), slow)
    assert found.what == "the nodes from `RELU_0` to `RELU_11` cannot be compiled: no"


def test_without_time_left_all_nodes_are_told(monkeypatch):
    monkeypatch.setattr(failing_node, "MAX_SECONDS", 0.0)
    found = located(CompilerError("no"), chain(), failing_at("TANH", trials=[]))
    assert found.what == "the nodes from `RELU_0` to `RELU_11` cannot be compiled: no"


def test_a_stack_dump_is_told_in_one_line():
    lines = [
        "Please report issues",
        "Stack dump:",
        "0.\tProgram arguments: iree-compile model.mlirbc",
        " #0 0x00007f3ad7b5a0ab llvm::sys::PrintStackTrace(llvm::raw_ostream&) Signals.cpp:0:0",
        " #4 0x00007f3ad9994f70 mlir::iree_compiler::DispatchCreation::decide(mlir::Region&) x.cpp",
    ]
    with pytest.raises(CompilerError) as caught:
        refuse_failure("iree", 245, lines)
    assert caught.value.what.splitlines()[1:] == [
        "it crashes in mlir::iree_compiler::DispatchCreation::decide"
    ]


@pytest.mark.slow
def test_a_node_that_the_converter_refuses_is_named():
    pytest.importorskip("tosa_converter_for_tflite", reason="npumake[compilers] is not installed")
    model = chain(["RELU"] * 4)
    numbers = [np.array(values, np.int32) for values in ((0, 5, 0), (1, -7, 4), (1, -1, 1))]
    spans = [FileTensor(f"s{at}", (3,), "int32", values) for at, values in enumerate(numbers)]
    first = len(model.tensors)
    tensors = [*model.tensors, *spans]
    backwards = FileOperator(
        "STRIDED_SLICE",
        (2, first, first + 1, first + 2),
        (3,),
        *KINDS["STRIDED_SLICE"],
        {0: ("i", 0), 1: ("i", 0)},
        node="reversed",
    )
    operators = [*model.operators[:2], backwards, *model.operators[3:]]
    broken = model._replace(tensors=tensors, operators=operators)
    with pytest.raises(CompilerError) as caught:
        tosa(written(*broken))
    assert located(caught.value, broken, tosa).what.startswith("`reversed` cannot be compiled")
