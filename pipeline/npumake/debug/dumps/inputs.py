"""What ours is fed: a sample of the project, a file, or the input that the dump itself holds; and
the other inputs that a board may have been fed in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from npumake.bundle.program import Program, Tensor
from npumake.data.formats import InputSpec, npy
from npumake.data.samples import Samples
from npumake.debug.dumps.difference import BOUND, difference
from npumake.debug.dumps.files import content
from npumake.debug.dumps.reading import DumpReading, orders
from npumake.engine.ort import Feeds
from npumake.engine.reference import ReferenceSession
from npumake.errors import ProjectError, did_you_mean
from npumake.project.sections import Files

MOST_SAMPLES = 32  # that are tried for the one that the board was fed


@dataclass(frozen=True)
class DumpFeeds:
    """`name` says which sample `feeds` is. `is_given`: the user named it, so the dump's own input
    must be the same."""

    name: str
    feeds: Feeds
    samples: Samples
    is_given: bool = False

    def chosen(self, entry: Program, dump: Mapping[str, Sequence[DumpReading]]) -> DumpFeeds:
        """The sample that the dump's own input is; this one where the user named it, and where none
        is like it. `entry` brings the inputs on their grids."""
        held = [name for name in entry.tensors if name in dump]
        if self.is_given or not held:
            return self
        for name, feeds in numbered(self.samples):
            if _agrees(entry, feeds, held, dump):
                return replace(self, name=name, feeds=feeds)
        return self

    def of_dump(
        self, entry: Program, dump: Mapping[str, Sequence[DumpReading]]
    ) -> DumpFeeds | None:
        """The input that the dump holds; None where it does not hold every one."""
        held = [name for name in entry.tensors if name in dump]
        feeds = dict(self.feeds)
        for name in held:
            source = name if name in feeds else _source(entry, name)
            for way in dump[name]:
                for feed in _fed(way, entry.tensors[name], feeds[source]):
                    if _agrees(entry, {**feeds, source: feed}, [name], dump):
                        feeds[source] = feed
        known = all(not np.array_equal(x, self.feeds[name]) for name, x in feeds.items())
        name = "the input that the dump holds, which is no sample of the project"
        return replace(self, name=name, feeds=feeds) if held and known else None


def feeding_of(samples: Samples, wanted: str | None) -> DumpFeeds:
    """A sample by its name or number, the first by default. Raises ProjectError."""
    if not len(samples):
        raise ProjectError("the project has no samples", None, "--input FILE.npy")
    if wanted is None:
        return DumpFeeds(f"sample 0, {samples.names[0]}", samples.read(0), samples)
    if wanted in samples.names:
        index = samples.names.index(wanted)
    elif wanted.isdecimal() and int(wanted) < len(samples):
        index = int(wanted)
    else:
        hint = did_you_mean(wanted, samples.names)
        raise ProjectError(f"no sample `{wanted}`, there are {len(samples)}", "--sample", hint)
    return DumpFeeds(f"sample {index}, {samples.names[index]}", samples.read(index), samples, True)


def fed_by_files(program: Program, files: Mapping[str, Path]) -> dict[str, np.ndarray]:
    """A .npy for each input; the leading 1 may be missing, and real numbers may be of another
    precision. Raises ProjectError for what does not fit."""
    feeds = {}
    for name, path in files.items():
        grid = program.tensors[name]
        values = npy(content(path), str(path), Files(), InputSpec(grid.shape, grid.dtype))
        same_kind = values.dtype.kind == np.dtype(grid.dtype).kind == "f"
        if values.shape not in (grid.shape, grid.shape[1:]) or not (
            same_kind or values.dtype == grid.dtype
        ):
            what = f"{values.dtype}{list(values.shape)} where `{name}` takes"
            raise ProjectError(f"{what} {grid.dtype}{list(grid.shape)}", str(path))
        feeds[name] = values.reshape(grid.shape).astype(grid.dtype)
    return feeds


def ways_to_feed(feeding: DumpFeeds) -> Iterator[tuple[str, Feeds]]:
    """`KIND:sentence` and feeds: the same sample fed otherwise, then the other samples."""
    for kind, words, way in WAYS:
        turned = {name: way(x) for name, x in feeding.feeds.items()}
        fits = all(x.shape == feeding.feeds[name].shape for name, x in turned.items())
        if fits and any(not np.array_equal(x, feeding.feeds[n]) for n, x in turned.items()):
            cast = {n: np.ascontiguousarray(x, feeding.feeds[n].dtype) for n, x in turned.items()}
            yield f"{kind}:{words}", cast
    for name, feeds in numbered(feeding.samples):
        if name != feeding.name:
            yield f"other_input:other input: the board was fed {name}, ours {feeding.name}", feeds


def _reversed_channels(x: np.ndarray) -> np.ndarray:
    axes = [axis for axis in range(1, x.ndim) if x.shape[axis] == 3]
    return np.flip(x, axes[0]) if axes else x


def _exchanged(x: np.ndarray) -> np.ndarray:
    """Height and width, of a square picture in either layout."""
    if x.ndim != 4:
        return x
    first = 2 if x.shape[1] <= x.shape[3] else 1
    return np.swapaxes(x, first, first + 1)


def _reinterpreted(x: np.ndarray) -> np.ndarray:
    """The memory of channels last, read as channels first, or the other way round."""
    if x.ndim != 4:
        return x
    order = (0, 2, 3, 1) if x.shape[1] <= x.shape[3] else (0, 3, 1, 2)
    return np.ascontiguousarray(x.transpose(order)).reshape(x.shape)


WAYS = (
    (
        "channel_order",
        "channel order: the board was fed with the channels reversed (RGB and BGR)",
        _reversed_channels,
    ),
    ("layout", "layout: the board was fed height and width exchanged", _exchanged),
    ("layout", "layout: the board was fed the other memory layout (NCHW and NHWC)", _reinterpreted),
    ("scale", "scale: the board was fed the sample divided by 255", lambda x: x / 255.0),
    ("scale", "scale: the board was fed the sample times 255", lambda x: x * 255.0),
    ("zero_point", "zero point: the board was fed the sample plus 128", lambda x: x + 128.0),
    ("zero_point", "zero point: the board was fed the sample less 128", lambda x: x - 128.0),
)


def numbered(samples: Samples) -> Iterator[tuple[str, Feeds]]:
    for index in range(min(len(samples), MOST_SAMPLES)):
        yield f"sample {index}, {samples.names[index]}", samples.read(index)


def _agrees(
    entry: Program, feeds: Feeds, held: Sequence[str], dump: Mapping[str, Sequence[DumpReading]]
) -> bool:
    """Whether the dump's inputs are what becomes of the feeds."""
    made = ReferenceSession(entry).run(held, feeds)
    return all(
        any(
            difference(x.astype(np.float64), way.codes, entry.tensors[n]).within(BOUND)
            for way in dump[n]
        )
        for n, x in zip(held, made, strict=True)
    )


def _source(entry: Program, name: str) -> str:
    """The input that the tensor is made of."""
    makers = {step.outputs[0]: step.inputs[0] for step in entry.instructions}
    while name in makers:
        name = makers[name]
    return name


def _fed(way: DumpReading, grid: Tensor, like: np.ndarray) -> Iterator[np.ndarray]:
    """The real numbers of the codes, in each order of axes that has the input's shape."""
    real = way.codes if grid.scale is None else (way.codes - grid.zero_point) * grid.scale
    for order in orders(real.ndim):
        if real.transpose(order).shape == like.shape:
            yield np.ascontiguousarray(real.transpose(order), like.dtype)
