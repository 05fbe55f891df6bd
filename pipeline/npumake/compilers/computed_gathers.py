"""GatherElements and GatherND at computed indices, as GATHER and GATHER_ND.

With strides t_a of a tensor x of shape (n_0 ... n_r), GatherElements along the axis k reads

    y[j_0 ... j_r] = flat x [i t_k + sum over the other axes a of j_a t_a]        i = indices[j]

Each term j_a t_a is a constant row that broadcasts, so the file holds no grid of indices. GATHER_ND
reads the indices as they are; leading batch axes are numbered in front of them. A negative index
counts from the end: TensorFlow Lite has none. Positions are int32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npumake.bundle.program import Instruction
from npumake.bundle.program import Tensor as Grid
from npumake.compilers.clamps import refused
from npumake.compilers.flatfile import NUMBERS
from npumake.compilers.tflite_builder import TFLiteBuilder, plain
from npumake.graph import Node, attribute

MAX_BROADCAST_AXES = 6  # axes of an ADD
INT32 = np.iinfo(np.int32)


class _Places:
    """int32 indices under construction, for the node's output `name`."""

    def __init__(self, draft: TFLiteBuilder, node: Node, step: Instruction) -> None:
        self.draft, self.name = draft, step.outputs[0]
        data, where = (str(value.name) for value in node.inputs if value is not None)
        self.sizes, shape = draft.grid(data).shape, draft.grid(where).shape
        if max(len(self.sizes), len(shape)) > MAX_BROADCAST_AXES:
            raise refused(step, f"it has more than {MAX_BROADCAST_AXES} axes")
        if np.prod(self.sizes, dtype=np.int64) > INT32.max:
            raise refused(step, f"it counts more than {INT32.max} elements")
        self.data, self.index = data, draft.read(where, plain(len(shape)))
        if draft.tensors[self.index].dtype != "int32":
            types = [("b", NUMBERS[dtype]) for dtype in (draft.grid(where).dtype, "int32")]
            self._emit("CAST", [self.index], shape, dict(enumerate(types)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.draft.tensors[self.index].shape

    def count_from_the_end(self, sizes: Sequence[int]) -> None:
        """Adds the size of its axis to a negative index."""
        index = self.index
        self._combine("ADD", np.array(sizes))
        from_end, zero = self.index, self._constant(np.zeros(1))
        is_negative = self._tensor(self.shape, "bool")
        self.draft.draw("LESS", [index, zero], [is_negative])
        self._emit("SELECT_V2", [is_negative, from_end, index], self.shape)

    def flatten(self, axis: int) -> None:
        """From indices along the axis to positions in the flat data."""
        rank = len(self.sizes)
        strides = [int(np.prod(self.sizes[a + 1 :], dtype=np.int64)) for a in range(rank)]
        if strides[axis] != 1:
            self._combine("MUL", np.array([strides[axis]]))
        for other, size in enumerate(self.shape):
            if other != axis and size > 1:
                row = np.arange(size) * strides[other]
                self._combine("ADD", row.reshape([-1 if a == other else 1 for a in range(rank)]))

    def number_batches(self, count: int) -> None:
        """Puts the numbers of the leading axes in front of the indices."""
        *leading, _ = shape = self.shape
        numbers = np.moveaxis(np.indices(leading, np.int32)[:count], 0, -1)
        parts = [self._constant(np.ascontiguousarray(numbers)), self.index]
        shape = (*leading, count + shape[-1])
        self._emit("CONCATENATION", parts, shape, {0: ("i", len(leading)), 1: ("b", 0)})

    def _combine(self, kind: str, values: np.ndarray) -> None:
        self._emit(kind, [self.index, self._constant(values)], self.shape, {0: ("b", 0)})

    def _emit(
        self,
        kind: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        options: dict[int, tuple[str, int]] | None = None,
    ) -> None:
        output = self._tensor(shape, "int32")
        self.draft.draw(kind, inputs, [output], options)
        self.index = output

    def _constant(self, values: np.ndarray) -> int:
        called = f"{self.name}_places_{len(self.draft.tensors)}"
        return self.draft.constant(called, values.astype(np.int32))

    def _tensor(self, shape: Sequence[int], dtype: str) -> int:
        called = f"{self.name}_places_{len(self.draft.tensors)}"
        return self.draft.hidden_on(Grid(tuple(shape), dtype), plain(len(shape)), called)


def gather_elements(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """Raises GraphError for more axes than TensorFlow Lite broadcasts."""
    places = _Places(draft, node, step)
    axis = attribute(node, "axis", 0) % len(places.sizes)
    places.count_from_the_end(places.sizes[axis : axis + 1])
    places.flatten(axis)
    flat = draft.hidden(places.data, plain(1), f"{places.name}_flat", (_count(places.sizes),))
    draft.reshape(draft.read_flat(places.data), flat)
    output = draft.make(places.name, plain(len(places.shape)))
    draft.draw("GATHER", [flat, places.index], [output], {0: ("i", 0)})


def gather_nd(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """Raises GraphError for more axes than TensorFlow Lite broadcasts."""
    places, batch = _Places(draft, node, step), attribute(node, "batch_dims", 0)
    depth = places.shape[-1]
    places.count_from_the_end(places.sizes[batch : batch + depth])
    if batch:
        places.number_batches(batch)
    output = draft.make(places.name, plain(len(draft.grid(places.name).shape)))
    data = draft.read(places.data, plain(len(places.sizes)))
    draft.draw("GATHER_ND", [data, places.index], [output])


def _count(sizes: Sequence[int]) -> int:
    return int(np.prod(sizes, dtype=np.int64))
