"""A float model in the form that a target's own tool gives it: the graph whose tensors have grids.

The stages before a target is known share one graph; what is in one piece on one chip alone is put
together here. Its tensors are tensors of that graph, so that what was measured of it holds.
"""

from __future__ import annotations

from npumake.errors import ProjectError
from npumake.graph import Graph
from npumake.passes.added_pass import added_pass
from npumake.passes.fuse_silu import fuse_silu
from npumake.quant.precision.placement import observed
from npumake.targets.target import Target


def in_form(graph: Graph, target: Target) -> Graph:
    """A copy of the optimized float `graph`, or the same where there is nothing to change.

    Raises ProjectError for a pass of `target` that no installed package adds, or that brings
    tensors without statistics.
    """
    if target.form is None or not (target.form.silu or target.form.passes):
        return graph
    own = graph.copy()
    changes = [fuse_silu(own)] if target.form.silu else []
    changes += [_with_added_pass(graph, own, name) for name in target.form.passes]
    return own if any(changes) else graph


def _with_added_pass(graph: Graph, own: Graph, name: str) -> int:
    """The places of `own` that the pass changes."""
    changes = added_pass(name)(own)
    if unmeasured := sorted({*observed(own)} - {*observed(graph)}):
        what = f"the pass `{name}` brings `{unmeasured[0]}`, a tensor without statistics"
        raise ProjectError(what, hint="it may join nodes, and keeps the names of their outputs")
    return changes
