"""A float model in the form that a target's own tool gives it: the graph whose tensors have grids.

The stages before a target is known share one graph; what is in one piece on one chip alone is put
together here. Its tensors are tensors of that graph, so that what was measured of it holds.
"""

from __future__ import annotations

from npumake.graph import Graph
from npumake.passes.fuse_silu import fuse_silu
from npumake.targets.target import Target


def in_form(graph: Graph, target: Target) -> Graph:
    """A copy of the optimized float `graph`, or the same where there is nothing to change."""
    if target.form is None or not target.form.silu:
        return graph
    own = graph.copy()
    return own if fuse_silu(own) else graph
