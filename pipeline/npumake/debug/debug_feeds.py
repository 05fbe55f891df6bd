"""Samples for the debugger: those of a build, or a folder `<input>/*.npy` as vendors lay it out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from npumake.data.formats import MAX_MEMBER_BYTES, InputSpec, npy
from npumake.data.samples import Feed, Samples
from npumake.errors import ProjectError
from npumake.graph import Graph, dtype, shape
from npumake.project.sections import Files

Data = str | Path | Samples | Sequence[Feed]


def samples_for(data: Data, graph: Graph) -> Samples:
    """The samples for `graph`. Raises ProjectError for samples that do not fit the inputs or if
    there are none; CacheError for a damaged samples file."""
    samples = _samples(data, graph)
    if not len(samples):
        raise ProjectError("no samples", str(data) if isinstance(data, str) else "")
    return samples


def digest_of(samples: Samples) -> str:
    """The SHA-256 of the fed values, independent of their file."""
    sha256 = hashlib.sha256()
    for feed in samples:
        for name in sorted(feed):
            array = np.ascontiguousarray(feed[name])
            sha256.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            sha256.update(array.data)
    return sha256.hexdigest()


def _samples(data: Data, graph: Graph) -> Samples:
    if isinstance(data, Samples):
        return data
    if not isinstance(data, str | Path):
        return Samples(tuple(str(index) for index in range(len(data))), lambda i: data[i])
    path = Path(data)
    if path.is_file():
        return Samples.load(path)
    if not path.is_dir():
        raise ProjectError("no such file or folder", str(path))
    return _of_folder(path, graph)


def _of_folder(folder: Path, graph: Graph) -> Samples:
    """One folder per input; files of the same name are one sample. With a single input, the files
    may be in `folder` itself."""
    inputs = {str(value.name): (shape(value), str(dtype(value))) for value in graph.inputs}
    folders = {name: folder / name for name in inputs}
    if len(inputs) == 1 and not next(iter(folders.values())).is_dir():
        folders = dict.fromkeys(inputs, folder)
    names = {name: _files(place) for name, place in folders.items()}
    first = next(iter(names.values()))
    for name, files in names.items():
        if files != first:
            raise ProjectError(
                "its files differ from those of the other inputs", str(folders[name])
            )

    def read(index: int) -> Feed:
        return {n: _array(folders[n] / first[index], *inputs[n]) for n in inputs}

    return Samples(tuple(first), read)


def _files(folder: Path) -> list[str]:
    """In the order of the numbers in their names. Raises ProjectError for an empty folder."""
    names = [path.name for path in folder.glob("*.npy")] if folder.is_dir() else []
    if not names:
        raise ProjectError("no .npy files here", str(folder), "calibration data is <input>/*.npy")
    return sorted(names, key=lambda name: [int(n) for n in re.findall(r"\d+", name)] or [-1])


def _array(path: Path, dims: tuple[int, ...], kind: str) -> np.ndarray:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_MEMBER_BYTES + 1)
    except OSError as error:
        raise ProjectError(f"cannot be read: {error.strerror}", str(path)) from error
    if len(data) > MAX_MEMBER_BYTES:
        raise ProjectError(f"more than {MAX_MEMBER_BYTES} bytes", str(path))
    array = npy(data, path.name, Files(), InputSpec(dims, kind))
    if array.size != int(np.prod(dims)) or array.dtype.name != kind:
        message = f"{array.dtype}{list(array.shape)} for an input of {kind}{list(dims)}"
        raise ProjectError(message, str(path))
    return array.reshape(dims)
