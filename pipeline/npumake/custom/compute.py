"""Computes one custom node.

Each run creates an instance and passes copies. The operator's state and its writes stay its own, so
the order of samples and the number of threads do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npumake.custom.blame import blamed
from npumake.custom.operators import Operator
from npumake.errors import StageError
from npumake.graph import Node, attribute, dtype, shape


def compute(
    operator: Operator, node: Node, read: Sequence[np.ndarray | None]
) -> tuple[np.ndarray, ...]:
    """The node's outputs, in the shapes and types of the graph. An absent optional input is None.

    Raises StageError if the user's code fails or returns another shape or type."""
    assert operator.implementation is not None
    attributes = {name: attribute(node, name) for name in node.attributes}
    copies = [None if array is None else np.array(array) for array in read]
    with blamed(f"`{node.name}` ({node.op_type})", operator.files):
        result = operator.implementation(**attributes).compute(*copies)
        arrays = [
            np.asarray(item) for item in (result if isinstance(result, list | tuple) else [result])
        ]
    if len(arrays) != len(node.outputs):
        message = f"`{node.name}` ({node.op_type}) gives {len(arrays)} arrays"
        raise StageError(f"{message}, its node {len(node.outputs)}", ", ".join(operator.files))
    for array, value in zip(arrays, node.outputs, strict=True):
        expected = dtype(value)
        if array.shape != shape(value) or not np.can_cast(array.dtype, expected, "same_kind"):
            raise StageError(
                f"`{node.name}` ({node.op_type}) gives {array.dtype}{list(array.shape)}, "
                f"the graph says {expected}{list(shape(value))}",
                ", ".join(operator.files),
            )
    return tuple(
        array.astype(dtype(value)) for array, value in zip(arrays, node.outputs, strict=True)
    )
