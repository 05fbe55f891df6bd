"""A wrong node of a compiled file, and which node a tensor is from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.custom.operators import Operators
from npumake.debug.compiled_file.runs import Arrays
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph, origin


class Fault(NamedTuple):
    """`node` computes `op_type` for the nodes `origin` of the trained model; `error` says how far
    its tensor is off, or how the process ended."""

    node: str
    op_type: str
    origin: tuple[str, ...]
    error: str

    def __str__(self) -> str:
        trained = ", ".join(name for name in self.origin if name != self.node)
        named = f" ({trained} in the trained model)" if trained else ""
        return f"`{self.node}` ({self.op_type}){named}: {self.error}"


def fault_of(step: Instruction, graph: Graph, error: str) -> Fault:
    """The fault of a step of the graph's program."""
    node = next((node for node in graph.nodes() if node.name == step.name), None)
    kind = step.op if node is None else node.op_type
    return Fault(step.name, kind, step.origin or (() if node is None else origin(node)), error)


def maker_of(program: Program, name: str) -> Instruction | None:
    """The step that computes a tensor; None for an input."""
    return next((step for step in program.instructions if name in step.outputs), None)


def first_infinite(program: Program, feed: Arrays, operators: Operators) -> str:
    """A phrase that names the first node of the program producing NaN or infinity."""
    names = [name for step in program.instructions for name in step.outputs]
    values = dict(zip(names, ReferenceSession(program, operators).run(names, feed), strict=True))
    for step in program.instructions:
        outputs = (values[name] for name in step.outputs)
        if any(x.dtype.kind == "f" and not np.isfinite(x).all() for x in outputs):
            return f"the first node to produce them is `{step.name}`"
    return "no inner node produces them"


def hidden_nodes(program: Program, taps: Arrays) -> tuple[str, ...]:
    """The nodes whose results the file does not show: they are judged with those behind them."""
    return tuple(
        step.name
        for step in program.instructions
        if step.op not in ("quantize", "dequantize", "constant")
        and not any(name in taps for name in step.outputs)
    )
