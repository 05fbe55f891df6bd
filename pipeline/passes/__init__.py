"""Passes: same numbers, fewer nodes. One file each; PASSES is their order.

A pass edits the graph in place through its verbs, keeps every output what it was, and returns how
many places it changed. A pass that changes numbers is no pass: it lives in quant/.
"""

from collections.abc import Callable

from pipeline.graph import Graph
from pipeline.passes.cancel_transposes import cancel_transposes
from pipeline.passes.drop_identity import drop_identity
from pipeline.passes.drop_unused import drop_unused
from pipeline.passes.explicit_pads import explicit_pads
from pipeline.passes.fold_constants import fold_constants
from pipeline.passes.fuse_batch_norm import fuse_batch_norm
from pipeline.passes.fuse_bias import fuse_bias

PASSES: tuple[Callable[[Graph], int], ...] = (
    drop_identity,
    fold_constants,
    cancel_transposes,
    explicit_pads,
    fuse_bias,
    fuse_batch_norm,
    drop_unused,
)


def optimized(graph: Graph) -> Graph:
    """A copy with every pass applied until none finds anything."""
    graph = graph.copy()
    while sum(run_pass(graph) for run_pass in PASSES):
        pass
    return graph.with_shapes()
