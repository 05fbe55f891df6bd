"""The unit of every node of a float model, and why a node is not on the NPU."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from npumake.engine.fusion import absorbed
from npumake.engine.tflite_rules import computes
from npumake.graph import Graph, Node, inside, producer
from npumake.quant.precision.placement import MOVE_OPERATORS, subgraphs
from npumake.targets.limits import Beyond, beyond
from npumake.targets.parts import is_documented, parts_of, runs
from npumake.targets.target import Target

FLOAT = "float"


@dataclass(frozen=True)
class NodePlacement:
    """One node; `subgraph` is None on the CPU. `dtype` is the type of its inputs.

    `why` is the reason for the CPU, `beyond` the documented limits that it exceeds. For an operator
    without documentation, `documented` is False and the node counts as the unit's.
    """

    node: str
    on: str
    subgraph: int | None
    type: str
    documented: bool = True
    why: str = ""
    beyond: tuple[Beyond, ...] = ()
    dtype: str = FLOAT


def node_placements(
    graph: Graph, target: Target, chip: Collection[Node], requested: Collection[Node] = ()
) -> tuple[NodePlacement, ...]:
    """Every node in graph order, a fused clamp with its node. Nodes in `chip` run on the unit; the
    project requests the unit for those in `requested`."""
    numbers = subgraphs(graph, set(chip))
    clamps = {absorbed(node) for node in graph.nodes()}
    rows = (
        (_placement(node, target, numbers.get(node), node in requested), *_within(node, target))
        for node in graph.nodes()
        if node not in clamps
    )
    return tuple(row for of_node in rows for row in of_node)


def _within(node: Node, target: Target) -> Iterator[NodePlacement]:
    """The nodes in the bodies of a Loop, If or Scan, which run on the CPU."""
    why = f"it is in a body of `{node.name}`, a {node.op_type}"
    for name, inner in inside(node):
        yield NodePlacement(name, "CPU", None, inner.op_type, target.documents(inner.op_type), why)


def _placement(
    node: Node, target: Target, subgraph: int | None, is_requested: bool
) -> NodePlacement:
    clamp = absorbed(node)
    types = node.op_type if clamp is None else f"{node.op_type}+{clamp.op_type}"
    name, documented = str(node.name), is_documented(node, target)
    if subgraph is not None:
        return NodePlacement(name, target.unit, subgraph, types, documented)
    limits = beyond(node, target) if runs(node, target, True) else ()
    why = "beyond a documented limit" if limits else next(_reasons(node, target, is_requested))
    return NodePlacement(name, "CPU", None, types, documented, why, limits)


def _reasons(node: Node, target: Target, is_requested: bool) -> Iterator[str]:
    """Why a node within all limits runs on the CPU, strongest reason first."""
    op_type = node.op_type
    if target.operators == ():
        yield f"{target.name} has no NPU"
    if op_type in target.refused:
        yield f"neither the {target.unit} nor the CPU of {target.name} runs {op_type}"
    for part in parts_of(node, target):
        name = part.op_type if part is node else f"{part.op_type}, a part of this {op_type}"
        if not target.runs_when_asked(part.op_type):
            yield f"the {target.unit} does not run {name}"
        if not is_requested and not target.runs(part.op_type):
            yield f"the {target.unit} runs {name} only if `quantization.npu` lists it"
    if not computes(node, target.rounding):
        yield f"no integer kernel here for this {op_type}; the vendor's tool may place it otherwise"
    if op_type in MOVE_OPERATORS:
        yield "it only moves data, and its input is not quantized on the unit"
    yield "it has no float output, or the project keeps it in float"


def float_leaks(graph: Graph, chip: Collection[Node]) -> tuple[str, ...]:
    """The nodes on the CPU between nodes on the unit: there the types leak to float, and back."""
    on_chip = set(chip)
    behind: set[Node] = set()
    for node in graph.nodes():
        makers = [maker for value in node.inputs if value and (maker := producer(value))]
        if any(maker in on_chip or maker in behind for maker in makers):
            behind.add(node)
    before: set[Node] = set()
    for node in reversed(graph.nodes()):
        readers = [use.node for value in node.outputs for use in value.uses()]
        if any(reader in on_chip or reader in before for reader in readers):
            before.add(node)
    leaking = (behind & before) - on_chip
    clamps = {absorbed(node) for node in on_chip}
    return tuple(str(n.name) for n in graph.nodes() if n in leaking and n not in clamps)


def unsupported(graph: Graph, target: Target) -> dict[str, tuple[str, ...]]:
    """The nodes that the chip cannot run at all, by operator: the vendor's tool refuses them."""
    names: dict[str, list[str]] = {}
    for node in graph.nodes():
        for name, part in ((str(node.name), node), *inside(node)):
            names.setdefault(part.op_type, []).append(name)
    return {kind: tuple(names[kind]) for kind in sorted(names.keys() & set(target.refused))}
