"""samples: what the model is fed during calibration, exactly.

files named under `data:` → per input an array of (samples, *shape), an image as value - 128
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.data.files import read_sample
from pipeline.data.normalized import raw
from pipeline.data.samples import Feed, Samples
from pipeline.errors import ProjectError, Route, did_you_mean
from pipeline.graph import Graph, Value, dtype, shape
from pipeline.project.files import SourceFile, SourceFiles
from pipeline.project.names import entries, strangers
from pipeline.project.sections import Files, Input
from pipeline.quant.images import images


def samples(
    original_float: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    sources: SourceFiles,
) -> Samples:
    fed = {str(value.name): value for value in original_float.inputs}
    for name in strangers(data, fed):
        hint = did_you_mean(name, fed)
        raise ProjectError(f"the model has no input `{name}`", Route(f"data.{name}"), hint)
    keys = entries(data, fed)
    for name in fed:
        if name not in keys:
            hint = f"add  {name}: {{files: ...}}"
            raise ProjectError(f"no samples for input `{name}`", Route("data"), hint)
    files = {name: sources[f"data.{key}.files"] for name, key in keys.items()}
    _check_counts({name: len(found) for name, found in files.items()})
    spoken = entries(inputs, fed)
    given = {name: inputs[spoken[name]] if name in spoken else Input() for name in fed}
    offsets = {name: 128 if name in images(original_float) else 0 for name in fed}

    def read(index: int) -> Feed:
        return {
            name: _fed(
                found[index], fed[name], given[name], offsets[name], data[keys[name]].normalized
            )
            for name, found in files.items()
        }

    first = next(iter(files.values()))
    return Samples(tuple(file.name for file in first), read)


def _fed(file: SourceFile, value: Value, given: Input, offset: int, normalized: bool) -> np.ndarray:
    kind, sizes = dtype(value), shape(value)
    if not normalized:
        return read_sample(file.read(), file.name, sizes, kind, offset)
    sample = read_sample(file.read(), file.name, sizes, kind, 0)
    return raw(sample, given.mean, given.scale, given.layout) - np.asarray(offset, kind)


def _check_counts(counts: Mapping[str, int]) -> None:
    """Inputs are fed together: the i-th file of one with the i-th of another."""
    first, expected = next(iter(counts.items()))
    for name, count in counts.items():
        if count != expected:
            raise ProjectError(
                f"{count} samples for input `{name}`, but {expected} for `{first}`",
                Route(f"data.{name}.files"),
            )
