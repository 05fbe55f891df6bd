"""An LSTM, GRU or RNN left in float, written out step by step; TensorFlow Lite's own have other
inputs, and no int8 that is ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeline.bundle.program import Instruction, Program, Tensor
from pipeline.engine.lower import lowered
from pipeline.engine.subgraphs import CPU
from pipeline.graph import Graph, Node, part
from pipeline.passes import optimized
from pipeline.passes.recurrent_steps import KINDS
from pipeline.passes.unroll_recurrent import hindrance, unroll_recurrent

MOST_STEPS = 1024


def written_out(program: Program, graph: Graph) -> tuple[Program, dict[str, Node]]:
    """The program with the steps of every such node that can be written out, and the nodes of all
    instructions by name."""
    nodes = {str(node.name): node for node in graph.nodes()}
    tensors, steps = dict(program.tensors), list[Instruction]()
    for step in program.instructions:
        steps += _steps(step, graph, nodes, tensors)
    return replace(program, tensors=tensors, instructions=tuple(steps)), nodes


def _steps(
    step: Instruction, graph: Graph, nodes: dict[str, Node], tensors: dict[str, Tensor]
) -> Iterator[Instruction]:
    """The instruction, or those of its steps; their nodes and tensors are added."""
    node = nodes.get(step.name)
    if step.op != CPU or node is None or node.op_type not in KINDS:
        yield step
        return
    if hindrance(node, MOST_STEPS) is not None:
        yield step
        return
    alone = part(graph, [node], [value for value in node.outputs if value.name in step.outputs])
    unroll_recurrent(alone, MOST_STEPS)
    alone = optimized(alone)
    nodes |= {str(each.name): each for each in alone.nodes()}
    made = lowered(alone, "twice")
    tensors |= {name: held for name, held in made.tensors.items() if name not in tensors}
    yield from made.instructions
