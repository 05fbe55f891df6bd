"""Reads from a compiled file which nodes run on the unit.

vela    an operator `ethos-u` is a subgraph on the NPU; every other operator runs on the CPU
qnn     a node EPContext is a subgraph on the HTP; every other node runs on the CPU
others  a bundle is the program itself; tflite, iree, onnx and openvino run on a CPU; rknn and torq
        are closed formats
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from npumake.bundle.program import Program
from npumake.compilers.flatfile import FileOperator, FlatModel
from npumake.compilers.tflite import tflite_model
from npumake.errors import GraphError
from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.frontends.tflite.schema import read_network
from npumake.graph import Graph, Node, parse

NPU_OPERATOR = "CUSTOM ethos-u"
QNN_SUBGRAPH = "EPContext"


@dataclass(frozen=True)
class FilePlacement:
    """By node, its operators on the `cpu`, or the number of the subgraph that runs all of it.

    A node in neither runs where the program says.
    """

    subgraphs: int
    cpu: Mapping[str, tuple[str, ...]]
    unit: Mapping[str, int]


def file_placement(
    data: bytes, program: Program, quantized: Graph, backend: str
) -> FilePlacement | None:
    """The placement in the file compiled from `quantized`; None where the format does not say.
    Raises GraphError for a damaged file."""
    reader = READERS.get(backend)
    try:
        return None if reader is None else reader(data, program, quantized)
    except MalformedError as error:
        raise GraphError(f"the compiled file cannot be read: {error}") from error


def _of_vela(data: bytes, program: Program, quantized: Graph) -> FilePlacement:
    """Vela keeps the names of tensors between its subgraphs and the operators on the CPU."""
    written: dict[str, str] = {}  # by tensor, the operator on the CPU that writes it
    parts: dict[str, int] = {}  # by tensor, the subgraph that writes it
    count = 0
    for operator in read_network(data).operators:
        names = [tensor.name for tensor in operator.outputs]
        if operator.type == NPU_OPERATOR:
            parts.update(dict.fromkeys(names, count))
            count += 1
        else:
            written.update(dict.fromkeys(names, operator.type))
    model = tflite_model(program, quantized)
    cpu: dict[str, dict[str, None]] = {}
    for operator_before in model.operators:
        kinds = [written[name] for name in _outputs(model, operator_before) if name in written]
        if kinds:
            cpu.setdefault(operator_before.node, {}).update(dict.fromkeys(kinds))
    unit = _subgraph_of_nodes(model, parts, written)
    on_unit = {node: number for node, number in unit.items() if node not in cpu}
    return FilePlacement(count, {node: tuple(kinds) for node, kinds in cpu.items()}, on_unit)


def _outputs(model: FlatModel, operator: FileOperator) -> list[str]:
    return [model.tensors[index].name for index in operator.outputs]


def _subgraph_of_nodes(
    model: FlatModel, parts: Mapping[str, int], written: Mapping[str, str]
) -> dict[str, int]:
    """By node, the subgraph that computes its last operator on the NPU: the one that writes the
    output, or the first one that reads what comes of it inside."""
    by_tensor: dict[int, int] = {}
    by_node: dict[str, int] = {}
    readers: dict[int, list[FileOperator]] = {}
    for operator in reversed(model.operators):
        names = _outputs(model, operator)
        inside = [
            by_tensor[output]
            for index in operator.outputs
            for reader in readers.get(index, ())
            for output in reader.outputs
            if output in by_tensor
        ]
        direct = [parts[name] for name in names if name in parts]
        numbers = [] if any(name in written for name in names) else direct or inside
        if numbers:
            by_tensor.update(dict.fromkeys(operator.outputs, min(numbers)))
            by_node.setdefault(operator.node, min(numbers))
        for index in operator.inputs:
            readers.setdefault(index, []).append(operator)
    return by_node


def _of_qnn(data: bytes, program: Program, quantized: Graph) -> FilePlacement:
    nodes = parse(data, "compiled.onnx").nodes()
    subgraphs = [node for node in nodes if node.op_type == QNN_SUBGRAPH]
    others = [node for node in nodes if node.op_type != QNN_SUBGRAPH]
    names = _names(others)
    cpu = {str(node.name): (node.op_type,) for node in quantized.nodes() if names & _names([node])}
    unit = [str(n.name) for n in quantized.nodes() if str(n.name) not in cpu and subgraphs]
    return FilePlacement(len(subgraphs), cpu, dict.fromkeys(unit, 0))


def _names(nodes: Iterable[Node]) -> set[str]:
    """The names of nodes and of their outputs."""
    return {str(name) for node in nodes for name in (node.name, *(v.name for v in node.outputs))}


READERS: Mapping[str, Callable[[bytes, Program, Graph], FilePlacement]] = {
    "qnn": _of_qnn,
    "vela": _of_vela,
}
