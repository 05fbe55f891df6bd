"""Samples: feeds for the model in one `.npz` that stock NumPy opens.

Nothing is compressed, so that samples are read directly from their offset. Samples are computed on
demand, so that a set larger than memory can be written.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import ClassVar, NamedTuple

import numpy as np

from npumake.digest import Json, canonical
from npumake.errors import CacheError

# Exceptions of zipfile and NumPy for other files.
_DAMAGE = (OSError, KeyError, RuntimeError, SyntaxError, TokenError, ValueError, zipfile.BadZipFile)

Feed = Mapping[str, np.ndarray]
NAMES = "sample names"  # the space keeps it apart from names of model inputs
ORIGIN = "samples origin"  # likewise
MADE_UP = "made up"  # prefix of the names of noise in place of missing samples


@dataclass(frozen=True)
class Samples:
    """`names[i]` is the i-th sample's name, `read(i)` its arrays by graph input. `origin` is the
    converter's record of the snapshot file, if the samples came from one."""

    names: tuple[str, ...]
    read: Callable[[int], Feed]
    origin: Mapping[str, Json] = field(default_factory=dict)

    suffix: ClassVar[str] = ".npz"

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Feed]:
        return (self.read(index) for index in range(len(self)))

    def subset(self, numbers: Sequence[int]) -> Samples:
        """The samples of these numbers, in this order."""
        names = tuple(self.names[number] for number in numbers)
        return Samples(names, lambda index: self.read(numbers[index]), self.origin)

    def save(self, path: Path) -> None:
        """Writes the names, the origin if any, and per input an array (samples, *shape)."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            _write(archive, NAMES, (len(self),), [np.array(self.names)])
            if self.origin:
                text = np.frombuffer(canonical(self.origin), np.uint8)
                _write(archive, ORIGIN, (1, len(text)), [text])
            first = self.read(0) if self.names else {}
            for name in sorted(first):
                shape = (len(self), *first[name].shape)
                _write(archive, name, shape, (feed[name] for feed in self))

    @classmethod
    def load(cls, path: Path) -> Samples:
        """Raises CacheError for a file that `save` did not write."""
        try:
            arrays = dict(_members(path))
            name_rows = arrays.pop(NAMES)
            names = tuple(str(name_rows.read(index)) for index in range(name_rows.shape[0]))
            text = arrays.pop(ORIGIN, None)
            origin = json.loads(text.read(0).tobytes()) if text else {}
        except _DAMAGE as error:
            raise CacheError(f"not a samples file: {error}", str(path)) from error

        def read(index: int) -> Feed:
            return {name: array.read(index) for name, array in arrays.items()}

        return cls(names, read, origin)


def made_up(samples: Samples) -> bool:
    """Whether these are noise in place of missing samples, which serves for timing only."""
    return bool(samples.names) and samples.names[0].startswith(MADE_UP)


def evenly_spaced(samples: Samples, count: int) -> Samples:
    """`count` samples, all of fewer."""
    return samples.subset(spaced_numbers(len(samples), count))


def spaced_numbers(total: int, count: int) -> list[int]:
    """`count` numbers below `total`, all of fewer."""
    count = min(count, total)
    return [at * total // count for at in range(count)]


def _write(
    archive: zipfile.ZipFile,
    name: str,
    shape: tuple[int, ...],
    parts: Sequence[np.ndarray] | Iterator[np.ndarray],
) -> None:
    """Writes one `.npy` member of `shape`, part by part."""
    entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980-01-01: the same bytes every time
    entry.create_system = 3
    with archive.open(entry, "w", force_zip64=True) as member:
        for index, part in enumerate(parts):
            if index == 0:
                header = {"descr": part.dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(member, header)
            member.write(np.ascontiguousarray(part).tobytes())


class _Rows(NamedTuple):
    """An array in a file, read row by row. It is not mapped, because mapped pages stay in memory
    and a thousand images do not fit."""

    path: Path
    dtype: np.dtype
    start: int
    shape: tuple[int, ...]

    def read(self, index: int) -> np.ndarray:
        size = math.prod(self.shape[1:])
        start = self.start + index * size * self.dtype.itemsize
        return np.fromfile(self.path, self.dtype, size, offset=start).reshape(self.shape[1:])


def _members(path: Path) -> Iterator[tuple[str, _Rows]]:
    """Each member with its offset in the file; reads only the headers."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for entry in archive.infolist():
            file.seek(entry.header_offset)
            header = file.read(30)  # local header: the two lengths at its end vary
            skip = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
            start = entry.header_offset + 30 + skip
            file.seek(start)
            head = io.BytesIO(file.read(min(entry.file_size, 4096)))
            np.lib.format.read_magic(head)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(head)
            if fortran or dtype.hasobject or entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{entry.filename} is not stored as it was written")
            begin = start + head.tell()
            if begin + math.prod(shape) * dtype.itemsize > path.stat().st_size:
                raise ValueError(f"{entry.filename} ends too early")
            yield entry.filename.removesuffix(".npy"), _Rows(path, dtype, begin, shape)
