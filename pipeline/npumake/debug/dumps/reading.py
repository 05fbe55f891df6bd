"""The possible readings of a file: type, memory order and quantization of its values.

The less a file's header says, the more readings it has. A reading has values on our grid, in our
shape. With our scale s and zero point z, a float r becomes r / s + z, not necessarily an integer;
tensors without a grid stay float.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from npumake.bundle.program import Program, Tensor
from npumake.debug.dumps.files import BARE, array, content
from npumake.debug.dumps.manifest import TensorDescription
from npumake.debug.dumps.matching import Match
from npumake.errors import ProjectError

ALIGNMENTS = (2, 4, 8, 16, 32, 64, 128, 256)  # elements that rows are padded to
CODES, REAL, SHIFTED, FLOATS, GRID = "codes", "real", "shifted codes", "codes in floats", "own grid"
TO_CHANNELS_LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}  # by rank; axes of NCHW
TO_CHANNELS_FIRST = {3: (0, 2, 1), 4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}  # by rank; axes of NHWC


@dataclass(frozen=True)
class DumpReading:
    """`codes` are float64 values on our grid, in our shape; `order` is the file's axis order:
    file = ours.transpose(order); `raw` are the file's values; `stride` is the length of a padded
    row in elements, 0 for none."""

    codes: np.ndarray
    order: tuple[int, ...]
    form: str
    raw: np.ndarray
    stride: int = 0

    @property
    def is_real(self) -> bool:
        """Whether values may be fractional or outside the type's range."""
        return self.form in (REAL, GRID)


class Readings(Mapping[str, Sequence[DumpReading]]):
    """The readings of each tensor's file. Files are read lazily, and only the last one stays in
    memory."""

    def __init__(self, matches: Mapping[str, Match], program: Program) -> None:
        self._matches, self._program = matches, program
        self._last: tuple[str, Sequence[DumpReading]] = ("", ())

    def __getitem__(self, tensor: str) -> Sequence[DumpReading]:
        """The readings of a tensor's file. Raises ProjectError for a damaged or unfit file."""
        if self._last[0] != tensor:
            with np.errstate(all="ignore"):  # bytes of integers may be read as any real numbers
                ways = readings(self._matches[tensor], self._program.tensors[tensor])
            self._last = (tensor, ways)
        return self._last[1]

    def __contains__(self, tensor: object) -> bool:
        return tensor in self._matches

    def __iter__(self) -> Iterator[str]:
        return iter(self._matches)

    def __len__(self) -> int:
        return len(self._matches)


def readings(match: Match, tensor: Tensor) -> list[DumpReading]:
    """Every reading of the file, likeliest first.

    Raises ProjectError for a damaged file, and for one that does not fit the tensor's size.
    """
    ways = [
        DumpReading(_back(values, order, tensor.shape), order, form, raw, stride)
        for raw, stride in _arrays(match, tensor)
        for order, permuted in _axis_orders(raw, tensor.shape, match.described)
        for values, form in _forms(permuted, tensor, match.described)
    ]
    if not ways:
        raise ProjectError(_misfit(match, tensor), str(match.file.path), _needed(tensor))
    return ways


def orders(rank: int) -> list[tuple[int, ...]]:
    """The axis orders that runtimes use: as ours, channels last, channels first."""
    candidates = [tuple(range(rank)), TO_CHANNELS_LAST.get(rank), TO_CHANNELS_FIRST.get(rank)]
    return list(dict.fromkeys(order for order in candidates if order is not None))


def _arrays(match: Match, tensor: Tensor) -> Iterator[tuple[np.ndarray, int]]:
    """The file's values, and the length of a padded row in elements."""
    values = array(match.file)
    if values is None:
        yield from _bare(match, tensor)
        return
    shape = _shape(match)
    if shape is not None and math.prod(shape) == values.size:
        values = values.reshape(shape)
    if values.size == math.prod(tensor.shape):
        yield values, 0
        return
    for order in orders(len(tensor.shape)):
        dims = _permuted(tensor.shape, order)
        if values.ndim == len(dims) and all(
            a >= b for a, b in zip(values.shape, dims, strict=True)
        ):
            yield values[tuple(slice(size) for size in dims)], values.shape[-1]


def _bare(match: Match, tensor: Tensor) -> Iterator[tuple[np.ndarray, int]]:
    """Raw values of the stated type, or of each type that the file's size allows."""
    assert match.file.suffix in BARE
    data, count = content(match.file.path), math.prod(tensor.shape)
    dtype_name = (match.described.dtype if match.described else None) or match.label.dtype
    types = [np.dtype(dtype_name)] if dtype_name else _types(tensor)
    shape = _shape(match)
    is_exact = False
    for dtype in (candidate for candidate in types if len(data) == count * candidate.itemsize):
        flat = np.frombuffer(data, dtype.newbyteorder("<"))
        if dtype_name or _is_plausible(flat):
            is_exact |= bool(dtype_name) or dtype.kind == "f" or dtype.itemsize == types[0].itemsize
            yield flat.reshape(shape) if shape and math.prod(shape) == count else flat, 0
    for dtype in () if is_exact else types:
        if len(data) > count * dtype.itemsize and len(data) % dtype.itemsize == 0:
            yield from _unpadded(np.frombuffer(data, dtype.newbyteorder("<")), tensor.shape)


def _types(tensor: Tensor) -> list[np.dtype]:
    own = np.dtype(tensor.dtype)
    other = np.dtype(f"{'u' if own.kind == 'i' else ''}int{8 * own.itemsize}")
    names = [own, *([other] if own.itemsize < 4 and own.kind in "iu" else [])]
    types = (*names, *map(np.dtype, ("float32", "int16", "int8", "int32", "float16")))
    return list(dict.fromkeys(types))


def _is_plausible(flat: np.ndarray) -> bool:
    """Whether the values look like floats; bytes of integers rarely do."""
    if flat.dtype.kind != "f":
        return True
    values = np.abs(flat[np.isfinite(flat)].astype(np.float64))
    sensible = (values == 0.0) | ((values > 1e-20) & (values < 1e20))
    return int(sensible.sum()) > 0.99 * flat.size


def _unpadded(flat: np.ndarray, shape: tuple[int, ...]) -> Iterator[tuple[np.ndarray, int]]:
    """The tensor out of aligned rows, and possibly aligned columns."""
    visited = set[tuple[int, ...]]()
    for order in orders(len(shape)):
        dims = _permuted(shape, order)
        for row, column in product((1, *ALIGNMENTS), repeat=2):
            steps = (*(1 for _ in dims[:-2]), *((column, row) if len(dims) > 1 else (row,)))
            padded = tuple(-(-n // a) * a for n, a in zip(dims, steps, strict=True))
            if math.prod(padded) == flat.size and padded not in visited:
                visited.add(padded)
                yield flat.reshape(padded)[tuple(slice(size) for size in dims)], padded[-1]


def _axis_orders(
    raw: np.ndarray, shape: tuple[int, ...], described: TensorDescription | None
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """The axis orders that the file's shape allows; all if it has none. A layout in the manifest is
    the only one."""
    rank = len(shape)
    layout = described.layout if described else None
    allowed = orders(rank)
    if layout is not None and len(layout) == rank:
        allowed = [
            tuple(range(rank))
            if layout[1] == "C"
            else TO_CHANNELS_LAST.get(rank, tuple(range(rank)))
        ]
    flat = raw.ndim <= 1 < rank
    fits = [o for o in allowed if flat or _squeezed(_permuted(shape, o)) == _squeezed(raw.shape)]
    if not fits:
        permutations_ = (
            _permuted(shape, order) for order in permutations(range(rank)) if rank <= 5
        )
        fits = (
            []
            if any(_squeezed(dims) == _squeezed(raw.shape) for dims in permutations_)
            else allowed
        )
        fits = fits or _turned(raw, shape)
    for order in fits:
        yield order, raw.reshape(_permuted(shape, order))


def _turned(raw: np.ndarray, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """An unusual axis order by the file's shape, such as height and width exchanged; the causes
    explain it."""
    return [
        order
        for order in permutations(range(len(shape)))
        if _squeezed(_permuted(shape, order)) == _squeezed(raw.shape)
    ][:1]


def _forms(
    raw: np.ndarray, tensor: Tensor, described: TensorDescription | None
) -> Iterator[tuple[np.ndarray, str]]:
    """The values on our grid, in each possible form."""
    values = raw.astype(np.float64)
    if tensor.scale is None:
        yield values, REAL
        return
    scale, zero = float(np.float32(tensor.scale)), tensor.zero_point
    grid = None if described is None else described.scale
    own = np.dtype(tensor.dtype)
    if raw.dtype.kind == "f":
        yield values / scale + zero, REAL
        if np.isfinite(values).all() and (values == np.rint(values)).all():
            yield values, FLOATS
    elif grid is not None and described is not None and not _matches(described, tensor):
        yield (values - described.zero_point) * grid / scale + zero, GRID
    elif raw.dtype.itemsize == own.itemsize < 4 and raw.dtype.kind != own.kind:
        half = 1 << (8 * own.itemsize - 1)
        yield values + (half if own.kind == "u" else -half), SHIFTED
    else:
        yield values, CODES


def _matches(described: TensorDescription, tensor: Tensor) -> bool:
    return described.zero_point == tensor.zero_point and math.isclose(
        described.scale or 0.0, tensor.scale or 0.0, rel_tol=1e-4
    )


def _back(values: np.ndarray, order: Sequence[int], shape: tuple[int, ...]) -> np.ndarray:
    return np.ascontiguousarray(values.transpose(np.argsort(order))).reshape(shape)


def _shape(match: Match) -> tuple[int, ...] | None:
    return (match.described.shape if match.described else None) or match.label.shape


def _permuted(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape[axis] for axis in order)


def _squeezed(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _misfit(match: Match, tensor: Tensor) -> str:
    content_ = f"{match.file.size} bytes"
    if match.file.suffix not in BARE:
        values = array(match.file)
        content_ = "" if values is None else f"{values.dtype}{list(values.shape)}"
    return f"{content_} where `{match.tensor}` is {tensor.dtype}{list(tensor.shape)}"


def _needed(tensor: Tensor) -> str:
    count = math.prod(tensor.shape)
    return f"{count} values: {count} bytes of int8, {2 * count} of int16, {4 * count} of float32"
