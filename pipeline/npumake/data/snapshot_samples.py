"""The samples of one model input in a calibration snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from npumake import digest
from npumake.data.snapshot import Snapshot, read_snapshot
from npumake.detection.metadata import Tiling
from npumake.errors import CacheError, ProjectError, Route, did_you_mean
from npumake.project.files import SourceFile
from npumake.project.sections import Input


def opened(
    file: SourceFile, shape: tuple[int, ...], layout: str, tiling: Tiling | None
) -> Snapshot:
    """The snapshot for an input of this trained shape. Raises ProjectError, and CacheError if the
    file's digest changed."""
    if len(shape) != 4 or shape[0] != 1:
        raise ProjectError(f"a snapshot for an input of shape {list(shape)}", file.name)
    size = (shape[1], shape[2]) if layout == "NHWC" else (shape[2], shape[3])
    if digest.of_file(Path(file.path)) != file.digest:
        raise CacheError("the file changed while it was being used", file.name, "run it again")
    return read_snapshot(Path(file.path), size, tiling)


def require_input(snapshot: Snapshot, name: str, section: Input, route: str) -> None:
    """Raises ProjectError if the snapshot has no samples for the input, or records another
    normalization than the project."""
    if name not in snapshot.names:
        hint = did_you_mean(name, snapshot.names)
        raise ProjectError(f"the snapshot holds no samples for `{name}`", Route(route), hint)
    if not snapshot.normalization.is_that_of(section.mean, section.scale):
        message = f"the snapshot has another normalization than `inputs: {name}`"
        hint = f"write  {name}: {snapshot.normalization}"
        raise ProjectError(message, Route(f"inputs.{name}"), hint)


def stored(
    snapshot: Snapshot, name: str, layout: str
) -> tuple[tuple[str, ...], Callable[[int], np.ndarray]]:
    """The names of the samples, and a function that reads the i-th in the input's layout."""

    def read(index: int) -> np.ndarray:
        picture = snapshot.sample(name, index)
        return (picture.transpose(1, 2, 0) if layout == "NHWC" else picture)[None]

    names = tuple(f"{snapshot.path.name} {index:05}" for index in range(snapshot.count))
    return names, read
