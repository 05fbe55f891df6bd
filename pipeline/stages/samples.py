"""samples: what the model is fed during calibration, exactly.

files named under `data:`, raw values as the model was trained on
    → per graph input an array of (samples, *shape) in the fed form, an image as value - 128
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.data.fed import fed_form
from pipeline.data.files import read_sample
from pipeline.data.samples import Feed, Samples
from pipeline.errors import ProjectError, Route, did_you_mean
from pipeline.graph import Graph, dtype, shape
from pipeline.project.feeding import Feeding, feeding
from pipeline.project.files import SourceFiles
from pipeline.project.sections import Files, Input
from pipeline.quant.images import trained_shapes


def samples(
    original_float: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    sources: SourceFiles,
) -> Samples:
    forms = _forms(original_float, inputs)
    for name in data:
        if name not in forms:
            hint = did_you_mean(name, forms)
            raise ProjectError(f"the model has no input `{name}`", Route(f"data.{name}"), hint)
    for name in forms:
        if name not in data:
            hint = f"add  {name}: {{files: ...}}"
            raise ProjectError(f"no samples for input `{name}`", Route("data"), hint)
    files = {name: sources[f"data.{name}.files"] for name in data}
    _check_counts({name: len(found) for name, found in files.items()})
    types = {str(value.name): dtype(value) for value in original_float.inputs}

    def read(index: int) -> Feed:
        feed: dict[str, np.ndarray] = {}
        for name, found in files.items():
            file, form = found[index], forms[name]
            kind = types[form.inputs(name)[0]]
            sample = read_sample(file.read(), file.name, form.shape, kind, form.offset)
            feed |= fed_form(sample, form, name)
        return feed

    first = next(iter(files.values()))
    return Samples(tuple(file.name for file in first), read)


def _forms(graph: Graph, inputs: Mapping[str, Input]) -> dict[str, Feeding]:
    """How each model input is fed, by its name, though the graph may have planes in its place."""
    shapes = dict(trained_shapes(graph))
    forms = {name: feeding(name, inputs.get(name, Input()), shapes[name]) for name in shapes}
    planes = {plane for name, form in forms.items() for plane in form.inputs(name)}
    for value in graph.inputs:
        name = str(value.name)
        if name not in planes:
            forms[name] = feeding(name, inputs.get(name, Input()), shape(value))
    return forms


def _check_counts(counts: Mapping[str, int]) -> None:
    """Inputs are fed together: the i-th file of one with the i-th of another."""
    first, expected = next(iter(counts.items()))
    for name, count in counts.items():
        if count != expected:
            raise ProjectError(
                f"{count} samples for input `{name}`, but {expected} for `{first}`",
                Route(f"data.{name}.files"),
            )
