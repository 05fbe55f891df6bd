"""Our input for a dump: a sample of the project, a file, or the dump's own input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from npumake.bundle.program import Program, Tensor
from npumake.data.formats import InputSpec, npy
from npumake.data.samples import Samples
from npumake.debug.dumps.difference import MAX_CODE_DIFFERENCE, difference
from npumake.debug.dumps.files import content
from npumake.debug.dumps.reading import DumpReading, orders
from npumake.engine.ort import Feeds
from npumake.engine.reference import ReferenceSession
from npumake.errors import ProjectError, did_you_mean
from npumake.project.sections import Files

MAX_SAMPLES = 32  # tried as the board's input


@dataclass(frozen=True)
class DumpFeeds:
    """`name` describes the sample `feeds`. `is_explicit`: the user chose it, so the dump's own
    input must match."""

    name: str
    feeds: Feeds
    samples: Samples
    is_explicit: bool = False

    def matching_sample(
        self, entry: Program, dump: Mapping[str, Sequence[DumpReading]]
    ) -> DumpFeeds:
        """The sample that matches the dump's own input; unchanged if the user chose one or none
        matches. `entry` quantizes the inputs."""
        tensors = [name for name in entry.tensors if name in dump]
        if self.is_explicit or not tensors:
            return self
        for name, feeds in numbered(self.samples):
            if _agrees(entry, feeds, tensors, dump):
                return replace(self, name=name, feeds=feeds)
        return self

    def of_dump(
        self, entry: Program, dump: Mapping[str, Sequence[DumpReading]]
    ) -> DumpFeeds | None:
        """The dump's own input; None unless it has every input."""
        tensors = [name for name in entry.tensors if name in dump]
        feeds = dict(self.feeds)
        for name in tensors:
            source = name if name in feeds else _source(entry, name)
            for way in dump[name]:
                for feed in _real_inputs(way, entry.tensors[name], feeds[source]):
                    if _agrees(entry, {**feeds, source: feed}, [name], dump):
                        feeds[source] = feed
        is_new = all(not np.array_equal(x, self.feeds[name]) for name, x in feeds.items())
        name = "the dump's own input, which is not a sample of the project"
        return replace(self, name=name, feeds=feeds) if tensors and is_new else None


def feeding_of(samples: Samples, selector: str | None) -> DumpFeeds:
    """A sample by its name or number, the first by default. Raises ProjectError."""
    if not len(samples):
        raise ProjectError("the project has no samples", None, "--input FILE.npy")
    if selector is None:
        return DumpFeeds(f"sample 0, {samples.names[0]}", samples.read(0), samples)
    if selector in samples.names:
        index = samples.names.index(selector)
    elif selector.isdecimal() and int(selector) < len(samples):
        index = int(selector)
    else:
        hint = did_you_mean(selector, samples.names)
        raise ProjectError(f"no sample `{selector}`, there are {len(samples)}", "--sample", hint)
    return DumpFeeds(f"sample {index}, {samples.names[index]}", samples.read(index), samples, True)


def feeds_from_files(program: Program, files: Mapping[str, Path]) -> dict[str, np.ndarray]:
    """Feeds from one .npy per input; the batch axis of 1 may be missing, floats may have another
    precision. Raises ProjectError for files that do not fit."""
    feeds = {}
    for name, path in files.items():
        grid = program.tensors[name]
        values = npy(content(path), str(path), Files(), InputSpec(grid.shape, grid.dtype))
        same_kind = values.dtype.kind == np.dtype(grid.dtype).kind == "f"
        if values.shape not in (grid.shape, grid.shape[1:]) or not (
            same_kind or values.dtype == grid.dtype
        ):
            message = f"{values.dtype}{list(values.shape)} where `{name}` takes"
            raise ProjectError(f"{message} {grid.dtype}{list(grid.shape)}", str(path))
        feeds[name] = values.reshape(grid.shape).astype(grid.dtype)
    return feeds


def numbered(samples: Samples) -> Iterator[tuple[str, Feeds]]:
    for index in range(min(len(samples), MAX_SAMPLES)):
        yield f"sample {index}, {samples.names[index]}", samples.read(index)


def _agrees(
    entry: Program, feeds: Feeds, tensors: Sequence[str], dump: Mapping[str, Sequence[DumpReading]]
) -> bool:
    """Whether the dump's input tensors match these feeds."""
    arrays = ReferenceSession(entry).run(tensors, feeds)
    return all(
        any(
            difference(x.astype(np.float64), way.codes, entry.tensors[n]).within(
                MAX_CODE_DIFFERENCE
            )
            for way in dump[n]
        )
        for n, x in zip(tensors, arrays, strict=True)
    )


def _source(entry: Program, name: str) -> str:
    """The model input that the tensor comes from."""
    makers = {step.outputs[0]: step.inputs[0] for step in entry.instructions}
    while name in makers:
        name = makers[name]
    return name


def _real_inputs(way: DumpReading, grid: Tensor, like: np.ndarray) -> Iterator[np.ndarray]:
    """The dequantized values, in each axis order that has the input's shape."""
    real = way.codes if grid.scale is None else (way.codes - grid.zero_point) * grid.scale
    for order in orders(real.ndim):
        if real.transpose(order).shape == like.shape:
            yield np.ascontiguousarray(real.transpose(order), like.dtype)
