"""CPU subgraphs: the nodes left to the CPU, in as few ONNX models as their order allows.

A step belongs to the CPU if it is an `onnx` instruction, else to the integer program. Its phase
counts the alternations between the two before it may run:

    phase(s) = max over the producers m of the inputs of s of  phase(m) + [m and s run elsewhere]
               but at least 0 for a step of the CPU, 1 for one of the integer program

Even phases belong to the CPU. No step waits for one of its own phase through another phase. CPU
steps of one phase that pass tensors to each other form one subgraph: a model that any ONNX tool
opens. The others form separate subgraphs that may run in parallel. A node computes the same bits in
any subgraph (npumake.engine.ort).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.errors import GraphError
from npumake.graph import Graph, Node, dtype, origin, parse, part, shape

CPU = "onnx"


def joined(program: Program) -> Program:
    """The same computation in order of phases, with every CPU subgraph as one instruction, named
    after its first node. Unread results of `dequantize` are dropped. Raises GraphError for an
    invalid CPU model."""
    program = _without_idle(program)
    readers = Counter(program.outputs)
    readers.update(name for step in program.instructions for name in step.inputs)
    groups = [[program.instructions[i] for i in group] for group in _groups(program)]
    steps = tuple(_united(group, readers) for group in groups)
    used = {*program.inputs, *(name for step in steps for name in (*step.inputs, *step.outputs))}
    tensors = {name: tensor for name, tensor in program.tensors.items() if name in used}
    return replace(program, tensors=tensors, instructions=steps)


def _without_idle(program: Program) -> Program:
    read = {*program.outputs, *(name for step in program.instructions for name in step.inputs)}
    busy = (s for s in program.instructions if s.op != "dequantize" or s.outputs[0] in read)
    return replace(program, instructions=tuple(busy))


def parted(program: Program) -> Program:
    """The inverse of `joined`: every CPU node as an instruction of its own. Raises GraphError for
    an invalid CPU model."""
    tensors, steps = dict(program.tensors), list[Instruction]()
    for step in program.instructions:
        graph = model_of(step) if step.op == CPU else None
        if graph is None or len(graph.nodes()) == 1:
            steps.append(step)
            continue
        for node in graph.nodes():
            steps.append(_alone(graph, node))
            outputs = {str(v.name): Tensor(shape(v), str(dtype(v))) for v in node.outputs}
            tensors = outputs | tensors
    return replace(program, tensors=tensors, instructions=tuple(steps))


def model_of(step: Instruction) -> Graph:
    """The ONNX model of a CPU subgraph. It may be untrusted, so it is checked as any file."""
    return parse(step.constants["model"].tobytes(), step.name)


def cpu_nodes(program: Program) -> Iterator[Node]:
    """The nodes left to the CPU, in order. Raises GraphError for an invalid model."""
    for step in program.instructions:
        if step.op == CPU:
            yield from model_of(step).nodes()


def _phases(program: Program) -> list[int]:
    phases: list[int] = []
    makers: dict[str, int] = {}
    for index, step in enumerate(program.instructions):
        own = int(step.op != CPU)
        behind = [phases[makers[name]] for name in step.inputs if name in makers]
        phases.append(max((phase + (phase % 2 != own) for phase in behind), default=own))
        makers |= dict.fromkeys(step.outputs, index)
    return phases


def _groups(program: Program) -> list[list[int]]:
    """Indices of the instructions in execution order: single ones, or those of a CPU
    subgraph."""
    phases = _phases(program)
    groups: dict[int, list[int]] = {}
    for index, label in enumerate(_labels(program, phases)):
        groups.setdefault(label, []).append(index)
    return sorted(groups.values(), key=lambda group: phases[group[0]])  # stable


def _labels(program: Program, phases: Sequence[int]) -> list[int]:
    """By instruction, the first one of its group."""
    labels: list[int] = []
    makers: dict[str, int] = {}
    for index, step in enumerate(program.instructions):
        makers |= dict.fromkeys(step.outputs, index)
        handed = {makers[name] for name in step.inputs if name in makers and step.op == CPU}
        phase_labels = {labels[maker] for maker in handed if phases[maker] == phases[index]}
        label = min(phase_labels, default=index)
        labels = (
            [label if old in phase_labels else old for old in labels]
            if len(phase_labels) > 1
            else labels
        )
        labels.append(label)
    return labels


def _united(steps: Sequence[Instruction], readers: Counter[str]) -> Instruction:
    """One model of the steps; its outputs are the results that other steps or the caller
    read."""
    if len(steps) == 1:
        return steps[0]
    graphs = [model_of(step) for step in steps]
    opsets = graphs[0].model.opset_imports
    if any(graph.model.opset_imports != opsets for graph in graphs):
        raise GraphError("its CPU models are of different opsets", steps[0].name)
    nodes = [node for graph in graphs for node in graph.nodes()]
    own = Counter(name for step in steps for name in step.inputs)
    outputs = [v for node in nodes for v in node.outputs if readers[str(v.name)] > own[str(v.name)]]
    return _instruction(part(graphs[0], nodes, outputs or nodes[-1].outputs), nodes)


def _alone(graph: Graph, node: Node) -> Instruction:
    return _instruction(part(graph, [node], node.outputs), [node])


def _instruction(graph: Graph, nodes: Sequence[Node]) -> Instruction:
    return Instruction(
        CPU,
        str(nodes[0].name),
        tuple(str(value.name) for value in graph.inputs),
        tuple(str(value.name) for value in graph.outputs),
        {"model": np.frombuffer(graph.to_bytes(), np.uint8)},
        origin=tuple(name for node in nodes for name in origin(node)),
    )
