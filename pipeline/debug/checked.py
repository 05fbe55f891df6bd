"""A model against one target: the placement that a build would have, the vendor's documented
limits, and the rewrites that bring nodes back onto the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pipeline.custom.operators import NO_OPERATORS, require
from pipeline.debug.placed import Placed, placed, unsupported
from pipeline.digest import Json, plain
from pipeline.graph import Graph, upgraded
from pipeline.graph.domains import refuse_strange_inputs
from pipeline.passes import REWRITES, optimized
from pipeline.project.sections import Quantization
from pipeline.quant.precision.asked import asked
from pipeline.quant.precision.plan import OVER, planned
from pipeline.targets.accepted import NOTE, beyond_documented, mark_format
from pipeline.targets.target import Target


@dataclass(frozen=True)
class Checked:
    """`network` is what the subgraphs are called after; `unsupported` are names by operator."""

    target: str
    network: str
    nodes: tuple[Placed, ...]
    unsupported: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]

    @property
    def on_cpu(self) -> int:
        return sum(row.subgraph is None for row in self.nodes)

    @property
    def subgraphs(self) -> tuple[str, ...]:
        """Their names, as the vendors' tools write them."""
        numbers = {row.subgraph for row in self.nodes if row.subgraph is not None}
        return tuple(f"{self.network}_subgraph_{number}" for number in sorted(numbers))

    def in_words(self, words: Callable[[str], str]) -> Checked:
        """The same, its reasons and notes in the words of a vendor's file."""
        nodes = tuple(replace(row, why=words(row.why)) for row in self.nodes)
        return replace(self, nodes=nodes, notes=tuple(map(words, self.notes)))

    def document(self) -> Json:
        """For machines."""
        return {
            "target": self.target,
            "subgraphs": list(self.subgraphs),
            "nodes": [_row(row) for row in self.nodes],
            "unsupported": plain(dict(self.unsupported)),
            "notes": list(self.notes),
        }


def _row(row: Placed) -> Json:
    limits = [
        {
            "limit": each.breach.limit,
            "found": {name: plain(fact) for name, fact in each.breach.found},
            "change": each.change,
        }
        for each in row.beyond
    ]
    return {**plain({name: getattr(row, name) for name in ROW}), "beyond": limits}


OLDEST = 7  # the opset since when operators broadcast as they do now
ROW = ("node", "on", "subgraph", "type", "documented", "why")


def checked(graph: Graph, target: Target, quantization: Quantization | None = None) -> Checked:
    """What a build for `target` makes of an optimized float graph. Raises ProjectError for a name
    in the project's `quantization` that means nothing."""
    wishes = quantization or Quantization()
    plan = planned(graph, wishes, target)
    rows = placed(graph, target, plan.unit, asked(graph, wishes).npu)
    wished = (note for note in plan.notes if not note.startswith(OVER))
    notes = (*beyond_documented(graph, target), *wished, *_notes(rows, target))
    return Checked(target.name, _network(graph), rows, unsupported(graph, target), notes)


def _network(graph: Graph) -> str:
    """An ONNX file's is called so whatever it says; a Caffe network has its own name."""
    name = graph.model.graph.name
    return name if name and NOTE not in graph.metadata else "main_graph"


def _notes(rows: tuple[Placed, ...], target: Target) -> tuple[str, ...]:
    """What is documented of the operators on the unit and cannot be checked, or is not at all."""
    there = {row.type.partition("+")[0]: row for row in rows if row.subgraph is not None}
    unknown = sorted(op_type for op_type, row in there.items() if not row.documented)
    doubt = f"not documented for {target.name}, taken as run by its {target.unit}: "
    remarks = [
        f"{', '.join(named)}: {remark.text}"
        for remark in target.remarks
        if (named := [op_type for op_type in remark.operators if op_type in there])
    ]
    doubts = [doubt + ", ".join(unknown)] if unknown else []
    needed = target.accepts.needs if target.accepts else None
    if needed and needed not in there:
        what = f"no node can execute on {target.unit}: {target.vendor}'s own tool needs one"
        doubts.append(f"{what} {needed} there")
    return (*doubts, *remarks)


def prepared(model: Graph, is_onnx: bool) -> Graph:
    """The optimized graph of a model as it was read. Raises GraphError."""
    require(model, NO_OPERATORS)
    refuse_strange_inputs(model.inputs)
    said = model.opset, int(model.model.ir_version)
    graph = upgraded(model.copy()).with_shapes()
    if is_onnx:
        mark_format(graph, *said)
    return optimized(graph)


@dataclass(frozen=True)
class Fixed:
    """A model rewritten, in its own opset, by the rewrites of these names, and what it is now."""

    model: Graph
    applied: tuple[str, ...]
    checked: Checked


def fixed(model: Graph, target: Target, is_onnx: bool = True) -> Fixed:
    """`model` with each of REWRITES that leaves the CPU fewer nodes and refuses none that was
    not; none applied where nothing helps. Raises GraphError."""
    model = model.with_shapes()
    best = Fixed(model, (), checked(prepared(model, is_onnx), target))
    for rewrite in REWRITES if model.opset >= OLDEST else ():
        trial = best.model.copy()
        if not rewrite(trial):
            continue
        trial = trial.with_shapes()
        found = checked(prepared(trial, is_onnx), target)
        worse = found.unsupported.keys() - best.checked.unsupported.keys()
        if found.on_cpu < best.checked.on_cpu and not worse:
            best = Fixed(trial, (*best.applied, _name(rewrite)), found)
    return best


def _name(rewrite: Callable[[Graph], int]) -> str:
    return rewrite.__name__
