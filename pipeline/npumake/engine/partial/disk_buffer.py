"""A temporary file for the tensors of all samples, read tensor by tensor.

Memory does not grow with samples. The disk space is freed with the last reader.
"""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from npumake.errors import CacheError


class _Spot(NamedTuple):
    start: int
    dtype: np.dtype
    shape: tuple[int, ...]


class DiskBuffer:
    """Tensors by name, sample after sample."""

    def __init__(self) -> None:
        self._samples: list[dict[str, _Spot]] = []
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # as long as there is a reader
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return len(self._samples)

    def keep(self, values: Mapping[str, np.ndarray]) -> None:
        """Append the tensors of the next sample. Raises CacheError on a full disk."""
        spots = {}
        try:
            for name, array in values.items():
                spots[name] = _Spot(self._file.tell(), array.dtype, array.shape)
                self._file.write(np.ascontiguousarray(array).data)
            self._file.flush()
        except OSError as error:
            hint = "TMPDIR names another folder for temporary files"
            raise CacheError(f"no room for the tensors: {error.strerror}", hint=hint) from error
        self._samples.append(spots)

    def at(self, index: int) -> Mapping[str, np.ndarray]:
        """The tensors of a sample, read lazily. Thread-safe."""
        return _At(self._file.fileno(), self._samples[index])


class _At(Mapping[str, np.ndarray]):
    def __init__(self, file: int, spots: Mapping[str, _Spot]) -> None:
        self._file, self._spots = file, spots

    def __getitem__(self, name: str) -> np.ndarray:
        start, dtype, shape = self._spots[name]
        size = math.prod(shape) * dtype.itemsize
        return np.frombuffer(os.pread(self._file, size, start), dtype).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._spots)

    def __len__(self) -> int:
        return len(self._spots)
