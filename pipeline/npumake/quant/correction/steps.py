"""Steps: a graph cut at its layers, so that each layer can change before its output is read.

Step k is all nodes behind k layers. Outputs of one step that a later one reads are carried, sample
by sample, so every node runs once per sample. Q/DQ of constants run wherever they are read and are
never carried.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.custom.operators import Operators
from npumake.engine.float_session import float_session
from npumake.engine.parallel import side_by_side
from npumake.graph import Graph, Node, Value, is_given, part, producer, reads, shape
from npumake.graph.qdq import is_qdq

BUDGET_BYTES = 64 << 20  # of carried tensors
MAX_SAMPLES = 128  # bounds the time for large sets

SampleTensors = dict[str, np.ndarray]  # carried tensors of one sample, by name


class LayerStep(NamedTuple):
    """Nodes with equally many layers before them, and the tensors that later steps read."""

    nodes: list[Node]
    carried: list[Value]

    @property
    def bytes(self) -> int:
        """The carried bytes of one sample."""
        return sum(4 * math.prod(shape(value)) for value in self.carried)


def steps(graph: Graph, layers: Collection[Node], *, first: bool = False) -> list[LayerStep]:
    """The steps up to the last layer. A layer is the last node of its step; with `first` it begins
    one, with all its readers."""
    constant = _of_constants(graph)
    depth: dict[Node, int] = {}
    last: dict[Value, int] = {}  # the last step that reads the value
    for node in graph.nodes():
        if node in constant:
            continue
        read = [value for value in reads(node) if producer(value) not in constant]
        makers = [maker for value in read if (maker := producer(value)) is not None]
        before = max((depth[m] + (not first and m in layers) for m in makers), default=0)
        depth[node] = before + (first and node in layers)
        last |= {value: max(last.get(value, 0), depth[node]) for value in read}
    cut = [LayerStep([], []) for _ in range(1 + max((depth[node] for node in layers), default=-1))]
    for node, at in depth.items():
        for step in cut[at : at + 1]:
            step.nodes.extend(n for n in _needed(node, constant) if n not in step.nodes)
            step.nodes.append(node)
    alive = [value for value in last if not is_given(value)]
    for at, step in enumerate(cut):
        step.carried.extend(v for v in alive if _producing_step(v, depth) <= at < last[v])
    return cut


def _of_constants(graph: Graph) -> set[Node]:
    """Q/DQ of constants."""
    nodes: set[Node] = set()
    for node in graph.nodes():
        constants = (is_given(value) or producer(value) in nodes for value in reads(node))
        if is_qdq(node) and all(constants):
            nodes.add(node)
    return nodes


def _needed(node: Node, constant: Collection[Node]) -> list[Node]:
    """The Q/DQ of constants that the node reads, in order."""
    pairs: list[Node] = []
    waiting = [node]
    while waiting:
        makers = [m for value in reads(waiting.pop()) if (m := producer(value)) is not None]
        constants = [maker for maker in makers if maker in constant]
        pairs += reversed(constants)
        waiting += constants
    return pairs[::-1]


def _producing_step(value: Value, depth: Mapping[Node, int]) -> int:
    """The step that produces the value; -1 for model inputs."""
    maker = producer(value)
    return -1 if maker is None else depth[maker]


def run(
    graph: Graph,
    nodes: Sequence[Node],
    outputs: Sequence[Value],
    samples: Iterable[SampleTensors],
    operators: Operators,
) -> Iterator[SampleTensors]:
    """Runs these nodes of `graph` for each sample; yields `outputs`, computed or carried, one
    sample at a time."""
    inside = {value for node in nodes for value in node.outputs}
    computed = [value for value in outputs if value in inside]
    passed = [str(value.name) for value in outputs if value not in inside]
    if not computed:  # onnxruntime refuses a model without outputs
        yield from ({name: values[name] for name in passed} for values in samples)
        return
    session = float_session(part(graph, nodes, computed), operators)
    names = [str(value.name) for value in computed]

    def ran(values: SampleTensors) -> SampleTensors:
        new = session.run(names, {name: values[name] for name in session.input_names})
        return {name: values[name] for name in passed} | dict(zip(names, new, strict=True))

    yield from side_by_side(ran, samples)
