"""What the debugger feeds: samples of a build, or a folder `<input>/*.npy` as the vendors write."""

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


def fed(data: Data, graph: Graph) -> Samples:
    """The samples for `graph`. Raises ProjectError for what does not fit the inputs and where there
    are none; CacheError for a damaged samples file."""
    found = _samples(data, graph)
    if not len(found):
        raise ProjectError("no samples to look at", str(data) if isinstance(data, str) else "")
    return found


def digest_of(samples: Samples) -> str:
    """The SHA-256 of what is fed, whatever file it came from."""
    found = hashlib.sha256()
    for feed in samples:
        for name in sorted(feed):
            array = np.ascontiguousarray(feed[name])
            found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            found.update(array.data)
    return found.hexdigest()


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
    """A folder per input, the files of one name one sample; for one input the files themselves."""
    inputs = {str(value.name): (shape(value), str(dtype(value))) for value in graph.inputs}
    folders = {name: folder / name for name in inputs}
    if len(inputs) == 1 and not next(iter(folders.values())).is_dir():
        folders = dict.fromkeys(inputs, folder)
    names = {name: _files(place) for name, place in folders.items()}
    first = next(iter(names.values()))
    for name, found in names.items():
        if found != first:
            raise ProjectError("not the same files as the other inputs have", str(folders[name]))

    def read(index: int) -> Feed:
        return {n: _array(folders[n] / first[index], *inputs[n]) for n in inputs}

    return Samples(tuple(first), read)


def _files(folder: Path) -> list[str]:
    """In the order of the numbers in their names. Raises ProjectError where there are none."""
    found = [path.name for path in folder.glob("*.npy")] if folder.is_dir() else []
    if not found:
        raise ProjectError("no .npy files here", str(folder), "calibration data is <input>/*.npy")
    return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)] or [-1])


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
        what = f"{array.dtype}{list(array.shape)} for an input of {kind}{list(dims)}"
        raise ProjectError(what, str(path))
    return array.reshape(dims)
