"""Decomposes operators into simpler ones, for a format that lacks them.

RECIPES covers operators without an ONNX function, or with one that loses precision, such as a
variance as the mean of squares minus the square of the mean. The others use ONNX's definition
(npumake.graph.definitions).

Not in PASSES: a target applies it to nodes that stay in float.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from npumake.graph import Graph, Node
from npumake.graph.definitions import by_definition
from npumake.passes import (
    spelled_functions,
    spelled_grid_sample,
    spelled_norms,
    spelled_resize,
    spelled_windows,
)
from npumake.passes.drop_identity import drop_identity
from npumake.passes.drop_unused import drop_unused
from npumake.passes.explicit_pads import explicit_pads
from npumake.passes.fold_constants import fold_constants
from npumake.passes.plain_gemm import as_product, plain_gemm
from npumake.passes.plain_pads import plain_pads
from npumake.passes.plain_sums import mean, plain_sums
from npumake.passes.split_to_slices import split_to_slices
from npumake.passes.writing import Writing

# Emits the decomposition before the node, and turns the node into its last operator. False leaves
# the node unchanged.
Recipe = Callable[[Writing], bool]
RECIPES: Mapping[str, Recipe] = {
    **spelled_functions.RECIPES,
    **spelled_norms.RECIPES,
    **spelled_windows.RECIPES,
    "Gemm": as_product,
    "GridSample": spelled_grid_sample.grid_sample,
    "Mean": mean,
    "Resize": spelled_resize.resize,
}
# None of these passes reverses a decomposition.
TIDYING = (
    *(drop_identity, fold_constants, explicit_pads, plain_pads, split_to_slices, plain_gemm),
    *(plain_sums, drop_unused),
)
MAX_ROUNDS = 8  # of decompositions into operators that are decomposed in turn


def decomposed(graph: Graph, supported: Collection[str]) -> Graph:
    """The graph in operators of `supported` as far as possible; may edit the given graph."""
    for _ in range(MAX_ROUNDS):
        recipes = [node for node in graph.nodes() if _written_out(graph, node)]
        strange = {node.op_type for node in graph.nodes() if not node.domain} - {
            *supported,
            *RECIPES,
        }
        inlined = by_definition(graph, strange)
        if not recipes and inlined is graph:
            break
        graph = inlined.with_shapes()
        while sum(run_pass(graph) for run_pass in TIDYING):
            graph = graph.with_shapes()
    return graph


def _written_out(graph: Graph, node: Node) -> bool:
    recipe = None if node.domain else RECIPES.get(node.op_type)
    return recipe is not None and recipe(Writing(graph, node))
