"""Converts the float model to the form of a target's own tool; its tensors get the grids.

The stages before the target share one graph. Operators that only some chips have are fused here.
The result has only tensors of the shared graph, so the statistics stay valid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from npumake.borders.chroma import ChromaGains, with_chroma_gains
from npumake.errors import ProjectError
from npumake.graph import Graph, Node
from npumake.passes.added_passes import added_passes
from npumake.passes.fuse_silu import fuse_silu
from npumake.quant.precision.placement import observed_tensors, runs
from npumake.targets import OWN_TARGETS
from npumake.targets.target import Target


def in_form(graph: Graph, target: Target) -> Graph:
    """A copy of the optimized float `graph`, or the graph itself if nothing changes.

    Raises ProjectError for an added pass that adds tensors without statistics.
    """
    passes: list[Callable[[Graph], int]] = []
    if target.form is not None and target.form.silu:
        passes.append(partial(fuse_silu, may_join=partial(_on_one_unit, target)))
    if target.form is not None and target.form.chroma:
        passes.append(partial(with_chroma_gains, gains=ChromaGains(*target.form.chroma)))
    if target.name not in OWN_TARGETS:
        passes += added_passes(target.name)
    if not passes:
        return graph
    own = graph.copy()
    changes = sum(run_pass(own) for run_pass in passes)
    if target.name not in OWN_TARGETS:
        _refuse_unmeasured(graph, own, target)
    return own if changes else graph


def _on_one_unit(target: Target, *nodes: Node) -> bool:
    """Whether the unit runs all of the nodes or none: one node has one place."""
    return len({runs(node, target, False) for node in nodes}) == 1


def _refuse_unmeasured(graph: Graph, own: Graph, target: Target) -> None:
    if unmeasured := sorted({*observed_tensors(own)} - {*observed_tensors(graph)}):
        message = f"a pass of `{target.name}` adds `{unmeasured[0]}`, a tensor without statistics"
        raise ProjectError(
            message, hint="it may join nodes, but must keep the names of their outputs"
        )
