"""Where RESIZE_NEAREST_NEIGHBOR is said to read an input, every kernel of LiteRT reads it."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.compilers.flatfile import FileOperator, FileTensor, written
from npumake.compilers.resizes import READ
from workspaces import few

INPUTS, OUTPUTS = range(1, 41), range(1, 61)


def network(n, flags):
    """A row of n resized to every length of OUTPUTS."""
    tensors = [FileTensor("x", (1, 1, n, 1), "int8", None, (1.0,))]
    operators = []
    for m in OUTPUTS:
        tensors.append(FileTensor(f"size{m}", (2,), "int32", np.array([1, m], np.int32)))
        tensors.append(FileTensor(f"y{m}", (1, 1, m, 1), "int8", None, (1.0,)))
        size, made = len(tensors) - 2, len(tensors) - 1
        options = {0: ("?", flags[0]), 1: ("?", flags[1])}
        operators.append(
            FileOperator("RESIZE_NEAREST_NEIGHBOR", (0, size), (made,), 3, 74, options)
        )
    return written(tensors, operators, [0], [step.outputs[0] for step in operators])


@pytest.mark.parametrize("kernels", ["BUILTIN", "BUILTIN_REF"])
@pytest.mark.parametrize("flags", READ, ids=["neither", "half pixel", "aligned"])
@pytest.mark.parametrize("n", few(INPUTS, {1, 2, 7, 14, 26, 39}.__contains__))
def test_litert_reads_the_places_of_a_nearest_resize(n, flags, kernels):
    module = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    chosen = getattr(module.OpResolverType, kernels)
    interpreter = module.Interpreter(
        model_content=network(n, flags), num_threads=1, experimental_op_resolver_type=chosen
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.arange(n, dtype=np.int8).reshape(1, 1, n, 1))
    interpreter.invoke()
    outputs = [one["index"] for one in interpreter.get_output_details()]
    for m, index in zip(OUTPUTS, outputs, strict=True):
        places = READ[flags](n, m)
        assert places in (None, interpreter.get_tensor(index).ravel().tolist()), m


def test_sizes_whose_place_the_kernels_of_litert_do_not_agree_on_are_told():
    """floor(11 * 26 / 22) is 13; in float32 it is 12."""
    assert READ[False, False](26, 22) is None
