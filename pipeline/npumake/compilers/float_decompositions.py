"""Float nodes that TensorFlow Lite lacks, decomposed into operators that it has.

LSTM, GRU and RNN are unrolled: TensorFlow Lite's own have other inputs and another int8 scheme.
Other operators have a recipe or ONNX's own definition (npumake.passes.decompose).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from npumake.bundle.program import Instruction, Program
from npumake.engine.grids import dequantizer
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.subgraphs import CPU
from npumake.errors import GraphError
from npumake.graph import Graph, Node, array, name_after, part
from npumake.passes import optimized
from npumake.passes.decompose import decomposed
from npumake.passes.recurrent_steps import KINDS
from npumake.passes.unroll_recurrent import hindrance, unroll_recurrent

MAX_STEPS = 1024


def written_out(
    program: Program, graph: Graph, supported: Collection[str]
) -> tuple[Program, dict[str, Node]]:
    """The program in operators of `supported` as far as possible, and the nodes of all instructions
    by name."""
    nodes = {str(node.name): node for node in graph.nodes()}
    tensors, steps = dict(program.tensors), list[Instruction]()
    used = dict.fromkeys([*tensors, *nodes, *graph.values()], 1)
    for step in program.instructions:
        alone = _simpler(step, nodes.get(step.name), graph, supported)
        if alone is None:
            steps.append(step)
            continue
        name_after(alone, nodes[step.name], used)
        nodes |= {str(node.name): node for node in alone.nodes()}
        simpler = lowered(alone, "twice")
        tensors |= {name: tensor for name, tensor in simpler.tensors.items() if name not in tensors}
        steps += simpler.instructions
    read = {name for step in steps for name in step.inputs}.union(program.outputs)
    live = (step for step in steps if step.inputs or not read.isdisjoint(step.outputs))
    return replace(program, tensors=tensors, instructions=tuple(live)), nodes


def _simpler(
    step: Instruction, node: Node | None, graph: Graph, supported: Collection[str]
) -> Graph | None:
    """The node as a graph of simpler ones; None if it has no decomposition, or needs none."""
    if step.op != CPU or node is None or node.domain:
        return None
    before = part(graph, [node], node.outputs).to_bytes()
    alone = in_float(graph, node)
    if node.op_type in KINDS:
        if hindrance(node, MAX_STEPS) is not None:
            return None
        unroll_recurrent(alone, MAX_STEPS)
        return optimized(alone)
    try:
        alone = decomposed(alone, supported)
    except GraphError:  # the body does not fit; the error then names the node itself
        return None
    is_known = all(node.op_type in supported and not node.domain for node in alone.nodes())
    return alone if is_known and alone.to_bytes() != before else None


def in_float(graph: Graph, node: Node) -> Graph:
    """The node of a Q/DQ graph alone, with its constants and neighbors in float."""
    makers = [maker for value in node.inputs if (maker := dequantizer(value)) is not None]
    constants = [maker for maker in makers if array(maker.inputs[0]) is not None]
    alone = part(graph, [node], node.outputs)
    inputs = {str(value.name): value for value in alone.inputs}
    for maker in constants:
        value = maker.outputs[0]
        (real,) = OrtSession(part(graph, [maker], [value]).to_bytes()).run(None, {})
        placeholder = inputs[str(value.name)]
        alone.replace_uses(placeholder, alone.constant(f"{value.name}_held", real))
        alone.drop_input(placeholder)
    return alone
