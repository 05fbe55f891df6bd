"""Limits for the CPU subgraphs of an untrusted bundle: known sizes and bounded loops.

interface   a model has exactly the inputs and outputs of its instruction, with the types and
            shapes of the program
sizes       every shape follows from the operators, not only from the file, and all tensors of one
            model have at most MAX_ELEMENTS elements; tensors in bodies do not count
loops       a Loop has a constant trip count of at most MAX_LOOP_ITERATIONS
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from npumake.bundle.program import Instruction, Program
from npumake.engine.subgraphs import CPU, model_of
from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, array, derived, dtype, open_dimensions, shape

MAX_ELEMENTS = 1 << 30
MAX_LOOP_ITERATIONS = 1 << 16


def refuse_unbounded(program: Program) -> None:
    """Raises GraphError for a CPU subgraph beyond these limits."""
    for step in program.instructions:
        if step.op == CPU:
            _refuse(step, program)


def _refuse(step: Instruction, program: Program) -> None:
    graph = model_of(step)
    _refuse_large(step, inferred := derived(graph))
    _refuse_other_ports("reads", step.inputs, inferred.inputs, step, program)
    _refuse_other_ports("makes", step.outputs, inferred.outputs, step, program)
    for node in graph.model.graph.all_nodes():
        if node.op_type == "Loop" and not _ends(node):
            raise GraphError("the loop has no constant trip count within the limit", str(node.name))


def _refuse_other_ports(
    role: str, names: Iterable[str], values: Iterable[Value], step: Instruction, program: Program
) -> None:
    declared = {name: (program.tensors[name].dtype, program.tensors[name].shape) for name in names}
    actual = {
        str(value.name): (str(dtype(value)), () if open_dimensions(value) else shape(value))
        for value in values
    }
    if declared != actual:
        message = (
            f"the CPU model {role} {_joined(actual)}, the program declares {_joined(declared)}"
        )
        raise GraphError(message, step.name)


def _joined(ports: dict[str, tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name}: {kind}{list(size)}" for name, (kind, size) in ports.items())


def _refuse_large(step: Instruction, graph: Graph) -> None:
    total = 0
    for node in graph.nodes():
        for value in node.outputs:
            if value.shape is None or open_dimensions(value):
                raise GraphError(f"the shape of `{value.name}` is unknown", step.name)
            total += prod(shape(value))
    if total > MAX_ELEMENTS:
        raise GraphError(
            f"the CPU model computes {total:,} values, more than {MAX_ELEMENTS:,}", step.name
        )


def _ends(node: Node) -> bool:
    turns = array(node.inputs[0]) if node.inputs else None
    return (
        turns is not None and turns.size == 1 and int(turns.reshape(-1)[0]) <= MAX_LOOP_ITERATIONS
    )
