"""Passes simplify a graph without changing its results. One file each; PASSES is their order.

A pass edits the graph in place, keeps every output, and returns its number of changes. A
transformation that changes results belongs to quant/.
"""

from collections.abc import Callable

from npumake.graph import Graph
from npumake.passes.batch_norm_to_conv import batch_norm_to_conv
from npumake.passes.cancel_transposes import cancel_transposes
from npumake.passes.drop_empty_parts import drop_empty_parts
from npumake.passes.drop_identity import drop_identity
from npumake.passes.drop_unused import drop_unused
from npumake.passes.explicit_pads import explicit_pads
from npumake.passes.fold_constants import fold_constants
from npumake.passes.fold_outputs import fold_outputs
from npumake.passes.fuse_affine import fuse_affine
from npumake.passes.fuse_ahead import fuse_ahead
from npumake.passes.fuse_pad import fuse_pad
from npumake.passes.gemm_to_conv import gemm_to_conv
from npumake.passes.keep_reduced_axes import keep_reduced_axes
from npumake.passes.merge_moves import merge_reshapes, merge_transposes
from npumake.passes.negate_by_mul import negate_by_mul
from npumake.passes.plain_arithmetic import plain_arithmetic
from npumake.passes.plain_clamps import plain_clamps
from npumake.passes.plain_gemm import plain_gemm
from npumake.passes.plain_norms import plain_norms
from npumake.passes.plain_pads import plain_pads
from npumake.passes.plain_softmax import plain_softmax
from npumake.passes.plain_sums import plain_sums
from npumake.passes.pool_whole_image import pool_whole_image
from npumake.passes.real_parameters import real_parameters
from npumake.passes.recognize_functions import recognize_functions
from npumake.passes.recognize_layer_norms import recognize_layer_norms
from npumake.passes.split_to_slices import split_to_slices
from npumake.passes.take_branch import take_branch
from npumake.passes.unroll_recurrent import unroll_recurrent

PASSES: tuple[Callable[[Graph], int], ...] = (
    drop_empty_parts,
    drop_identity,
    fold_constants,
    fold_outputs,
    real_parameters,
    take_branch,
    cancel_transposes,
    explicit_pads,
    plain_pads,
    split_to_slices,
    merge_reshapes,
    merge_transposes,
    fuse_pad,
    recognize_layer_norms,  # before fuse_affine, which takes a scale behind one
    fuse_affine,
    recognize_functions,
    plain_arithmetic,
    plain_clamps,
    plain_softmax,
    plain_norms,
    plain_gemm,
    plain_sums,
    batch_norm_to_conv,
    fuse_ahead,  # after recognize_functions, whose last node may be a product
    drop_unused,
)

# Optional passes that targets request, for models of any opset: same results, other limits.
REWRITES: tuple[Callable[[Graph], int], ...] = (
    negate_by_mul,
    keep_reduced_axes,
    pool_whole_image,
    gemm_to_conv,
    unroll_recurrent,
)


def optimized(graph: Graph) -> Graph:
    """A copy with every pass applied until none changes it."""
    graph = graph.with_shapes()
    while sum(run_pass(graph) for run_pass in PASSES):
        graph = graph.with_shapes()
    return graph
