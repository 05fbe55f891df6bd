"""The float model in the form of a target's own tool: the graph whose tensors get grids.

Stages before the target share one graph. Operators that one chip has in one piece are fused here.
All tensors of the result are tensors of that graph, so its statistics hold.
"""

from __future__ import annotations

from npumake.graph import Graph
from npumake.passes.fuse_silu import fuse_silu
from npumake.targets.target import Target


def in_form(graph: Graph, target: Target) -> Graph:
    """A copy of the optimized float `graph`, or the graph itself where nothing changes."""
    if target.form is None or not target.form.silu:
        return graph
    own = graph.copy()
    return own if fuse_silu(own) else graph
