"""Decodes constants that are stored without their zeros.

The dimensions of the tensor, then those of blocks, are traversed in the file's order, level by
level. A dense level stores every index of its dimension. A compressed one (CSR) lists them: entry k
of the level above has `indices[segments[k] : segments[k + 1]]`. Source: SparsityParameters of
TensorFlow's schema.fbs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from npumake.frontends.tflite.flatbuffer import NO_TABLE, FlatTable, MalformedError

DENSE, COMPRESSED = 0, 1
INDICES = {1: "<i4", 2: "<u2", 3: "u1"}  # by their number in the union SparseIndexVector
MAX_EXPANSION = 64  # limit of the dense tensor's size, as a multiple of the file's
Places = dict[int, np.ndarray]  # by dimension: the index of each value along it


def filled(sparsity: FlatTable, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The dense tensor of `shape`; `values` are flat. Raises MalformedError."""
    if math.prod(shape) * values.itemsize > MAX_EXPANSION * len(sparsity.data) + (1 << 20):
        raise MalformedError(f"a sparse tensor of {list(shape)} is too large for its file")
    dense = np.zeros(shape, values.dtype)
    dense[_positions(sparsity, shape, len(values))] = values
    return dense


def _positions(sparsity: FlatTable, shape: Sequence[int], count: int) -> tuple[np.ndarray, ...]:
    """For each dimension, the indices of the values."""
    order, blocked = (sparsity.numbers(field, "<i4").tolist() for field in (0, 1))
    levels, rank = sparsity.tables(2), len(shape)
    fits = len(levels) == len(order) == rank + len(blocked)
    if not fits or sorted(order) != [*range(len(order))]:
        raise MalformedError(f"a sparse tensor of rank {rank} traverses the dimensions {order}")
    places: Places = {}
    slots = 1
    sizes = {}  # of dense levels
    for dimension, level in zip(order, levels, strict=True):
        places, slots = _walked(places, slots, dimension, level, math.prod(shape))
        sizes[dimension] = level.scalar(1, "i", 0)
    for block, dimension in enumerate(blocked, rank):
        if not 0 <= dimension < rank:
            raise MalformedError(f"a block along the dimension {dimension} of {rank}")
        places[dimension] = places[dimension] * sizes[block] + places[block]
    positions = tuple(places[dimension] for dimension in range(rank))
    inside = all(((at >= 0) & (at < n)).all() for at, n in zip(positions, shape, strict=True))
    if slots != count or not inside:
        raise MalformedError(f"the {count} values of a sparse tensor do not fit {list(shape)}")
    return positions


def _walked(
    places: Places, slots: int, dimension: int, level: FlatTable, max_size: int
) -> tuple[Places, int]:
    """The next level: indices of the levels above, repeated, and its own. `max_size` is the number
    of elements of the tensor."""
    if level.scalar(0, "b", DENSE) == DENSE:
        size = level.scalar(1, "i", 0)
        if size < 1 or size * slots > max_size:
            raise MalformedError(f"a sparse tensor has {size} places along a dimension")
        own, times = np.tile(np.arange(size, dtype=np.int64), slots), np.full(slots, size)
    else:
        segments, own = (_listed(level, field) for field in (2, 4))
        times = np.diff(segments)
        if len(times) != slots or (times < 0).any() or times.sum() != len(own):
            raise MalformedError("the segments of a sparse tensor are invalid")
    above = {key: np.repeat(at, times) for key, at in places.items()}
    return above | {dimension: own}, len(own)


def _listed(level: FlatTable, field: int) -> np.ndarray:
    dtype = INDICES.get(level.scalar(field, "b", 0))
    indices = level.table(field + 1)
    if dtype is None or indices is NO_TABLE:
        raise MalformedError("a sparse tensor does not list its indices")
    return indices.numbers(0, dtype).astype(np.int64)
