"""Checks a model against one target: the placement of its nodes, the vendor's documented limits,
and rewrites that move nodes from the CPU to the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from npumake.custom.operators import NO_OPERATORS, require
from npumake.debug.node_table import Entry, Listing
from npumake.debug.placement_report import (
    FLOAT,
    NodePlacement,
    float_leaks,
    node_placements,
    unsupported,
)
from npumake.digest import Json, plain
from npumake.graph import Graph, producer, upgraded
from npumake.graph.domains import refuse_strange_inputs
from npumake.graph.undeployable import refuse_undeployable
from npumake.passes import REWRITES, optimized
from npumake.project.sections import Quantization
from npumake.quant.precision.form import in_form
from npumake.quant.precision.placement import activations
from npumake.quant.precision.precision_plan import (
    NARROW,
    REASON_LIMIT,
    PrecisionPlan,
    plan_precision,
)
from npumake.quant.precision.type_propagation import WIDE
from npumake.quant.precision.type_requests import requested_types
from npumake.targets.form import Form
from npumake.targets.onnx_limits import NOTE, beyond_documented, mark_format
from npumake.targets.target import Target


@dataclass(frozen=True)
class ModelCheck:
    """`network` is the prefix of the subgraphs' names; `nodes` are those of the graph, `rows` those
    of the vendor's table; `unsupported` are node names by operator, `leaks` nodes that compute in
    float between nodes on the unit."""

    target: str
    network: str
    nodes: tuple[NodePlacement, ...]
    unsupported: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    rows: tuple[NodePlacement, ...]
    leaks: tuple[str, ...] = ()

    @property
    def on_cpu(self) -> int:
        return sum(row.subgraph is None for row in self.nodes)

    @property
    def subgraphs(self) -> tuple[str, ...]:
        """The subgraphs' names, as in the vendors' tools."""
        numbers = {row.subgraph for row in self.nodes if row.subgraph is not None}
        return tuple(f"{self.network}_subgraph_{number}" for number in sorted(numbers))

    def in_words(self, words: Callable[[str], str]) -> ModelCheck:
        """A copy with reasons and notes in the terms of a vendor's file."""
        nodes, rows = (
            tuple(replace(row, why=words(row.why)) for row in group)
            for group in (self.nodes, self.rows)
        )
        return replace(self, nodes=nodes, rows=rows, notes=tuple(map(words, self.notes)))

    def document(self) -> Json:
        """The check as JSON."""
        return {
            "target": self.target,
            "subgraphs": list(self.subgraphs),
            "nodes": [_row(row) for row in self.rows],
            "unsupported": plain(dict(self.unsupported)),
            "leaks": list(self.leaks),
            "notes": list(self.notes),
        }


def _row(row: NodePlacement) -> Json:
    limits = [
        {
            **({"part": limit.part} if limit.part else {}),
            "limit": limit.breach.limit,
            "found": {name: plain(fact) for name, fact in limit.breach.facts},
            "change": limit.change,
        }
        for limit in row.beyond
    ]
    return {**plain({name: getattr(row, name) for name in ROW}), "beyond": limits}


MIN_OPSET = 7  # broadcasting rules changed in this opset
ROW = ("node", "on", "subgraph", "type", "dtype", "documented", "why")


def check_model(
    graph: Graph, target: Target, quantization: Quantization | None = None
) -> ModelCheck:
    """The check of an optimized float graph for `target`. Raises ProjectError for an unknown name
    in the project's `quantization`."""
    requests = quantization or Quantization()
    graph = in_form(graph, target)
    plan = plan_precision(graph, requests, target)
    rows = _typed(
        node_placements(graph, target, plan.unit, requested_types(graph, requests).npu), plan
    )
    requested = (note for note in plan.notes if not note.startswith(REASON_LIMIT))
    notes = (*beyond_documented(graph, target), *requested, *_notes(rows, target))
    listed = rows if target.form is None else _listed(graph, target.form, rows, plan)
    lacking = unsupported(graph, target)
    leaks = float_leaks(graph, plan.unit)
    return ModelCheck(target.name, _network(graph), rows, lacking, notes, listed, leaks)


def _typed(rows: tuple[NodePlacement, ...], plan: PrecisionPlan) -> tuple[NodePlacement, ...]:
    """The rows with input types of the unit's nodes; int32 sums count as int8."""
    types = {str(node.name): NARROW for node in plan.unit}
    types |= {str(n.name): "float16" for n in plan.half}
    for (node, _), type in reversed([*plan.reads.items()]):
        types[str(node.name)] = type
    return tuple(replace(row, dtype=types.get(row.node, row.dtype)) for row in rows)


def _listed(
    graph: Graph, form: Form, rows: tuple[NodePlacement, ...], plan: PrecisionPlan
) -> tuple[NodePlacement, ...]:
    """The rows of the vendor's table. Ranges are not known yet, so only int16 tensors from another
    subgraph count as requantized."""
    by_node = {row.node: row for row in rows}
    listing = Listing(
        graph,
        form,
        {row.node for row in rows if row.subgraph is not None},
        {str(node.name) for node in plan.sums},
        {row.node for row in rows if row.dtype == WIDE},
        {
            str(node.name): [
                str(value.name)
                for value in activations(node)
                if (maker := producer(value)) is not None
                and _crosses(by_node.get(str(maker.name)), by_node.get(str(node.name)))
            ]
            for node in graph.nodes("Concat")
        },
    )
    entries = [_row_of(entry, by_node[entry.node]) for entry in listing.entries()]
    names = {str(node.name) for node in graph.nodes()}
    return (*entries, *(row for row in rows if row.node not in names))


def _crosses(maker: NodePlacement | None, reader: NodePlacement | None) -> bool:
    if maker is None or reader is None or None in (maker.subgraph, reader.subgraph):
        return False
    return maker.subgraph != reader.subgraph and maker.dtype == WIDE


def _row_of(entry: Entry, row: NodePlacement) -> NodePlacement:
    row = replace(row, node=entry.name, type=entry.type)
    return replace(row, on="CPU", subgraph=None, dtype=FLOAT) if entry.cpu else row


def _network(graph: Graph) -> str:
    """The vendors' name of the network: fixed for ONNX files, its own for Caffe."""
    name = graph.model.graph.name
    return name if name and NOTE not in graph.metadata else "main_graph"


def _notes(rows: tuple[NodePlacement, ...], target: Target) -> tuple[str, ...]:
    """Notes on operators on the unit: undocumented ones, and documented limits that cannot be
    checked."""
    npu_rows = {row.type.partition("+")[0]: row for row in rows if row.subgraph is not None}
    unknown = sorted(op_type for op_type, row in npu_rows.items() if not row.documented)
    doubt = f"not documented for {target.name}, assumed to run on its {target.unit}: "
    remarks = [
        f"{', '.join(named)}: {remark.text}"
        for remark in target.remarks
        if (named := [op_type for op_type in remark.operators if op_type in npu_rows])
    ]
    doubts = [doubt + ", ".join(unknown)] if unknown else []
    needed = target.accepts.needs if target.accepts else None
    if needed and needed not in npu_rows:
        message = f"no node can execute on {target.unit}: {target.vendor}'s own tool needs one"
        doubts.append(f"{message} {needed} there")
    return (*doubts, *remarks)


def prepared(model: Graph, is_onnx: bool) -> Graph:
    """The optimized graph of an imported model. Raises GraphError."""
    require(model, NO_OPERATORS)
    refuse_strange_inputs(model.inputs)
    versions = model.opset, int(model.model.ir_version)
    graph = upgraded(model.copy()).with_shapes()
    refuse_undeployable(graph)
    if is_onnx:
        mark_format(graph, *versions)
    return optimized(graph)


@dataclass(frozen=True)
class RewrittenModel:
    """A model in its own opset after the rewrites `applied`, and its check."""

    model: Graph
    applied: tuple[str, ...]
    check: ModelCheck


def rewritten(model: Graph, target: Target, is_onnx: bool = True) -> RewrittenModel:
    """`model` with every rewrite of REWRITES that leaves fewer nodes on the CPU and makes no node
    unsupported. Raises GraphError."""
    model = model.with_shapes()
    best = RewrittenModel(model, (), check_model(prepared(model, is_onnx), target))
    for rewrite in REWRITES if model.opset >= MIN_OPSET else ():
        trial = best.model.copy()
        if not rewrite(trial):
            continue
        trial = trial.with_shapes()
        check = check_model(prepared(trial, is_onnx), target)
        worse = check.unsupported.keys() - best.check.unsupported.keys()
        if check.on_cpu < best.check.on_cpu and not worse:
            best = RewrittenModel(trial, (*best.applied, _name(rewrite)), check)
    return best


def _name(rewrite: Callable[[Graph], int]) -> str:
    return rewrite.__name__
