"""samples: what the model is fed during calibration, exactly.

    file → array (pipeline.data.formats) → transforms → the raw value the model was trained on,
           taken back where the file holds normalised ones (pipeline.data.normalized)
         → the fed form, an image as value - 128 → per graph input an array of (samples, *shape)

Every sample is looked at before anything is fed: too few, blank, duplicate or out of range fails
the build, and so does a set that the model's first BatchNormalization does not know; unless
`allow:` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pipeline.data.fed import fed_form
from pipeline.data.files import fed, noise, read_sample
from pipeline.data.formats import Taken
from pipeline.data.lint import fact, findings
from pipeline.data.normalized import raw
from pipeline.data.samples import MADE_UP, Feed, Samples
from pipeline.debug.preprocessing import preprocessing_mistake
from pipeline.errors import ProjectError, Route, did_you_mean
from pipeline.graph import Graph, dtype, shape
from pipeline.project.feeding import Feeding, feeding
from pipeline.project.files import SourceFiles
from pipeline.project.names import entries, strangers
from pipeline.project.sections import Files, Input
from pipeline.quant.images import trained_shapes
from pipeline.quant.loaded import carries_grids

# The i-th sample of one input as its file has it, and how the samples are called.
Read = Callable[[int], np.ndarray]

# Of the width of a range: what float32 loses when normalised values are taken back.
LOST = 1e-4
ENOUGH = 8  # samples of noise where none are given


def samples(
    original_float: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    sources: SourceFiles,
) -> Samples:
    if not data:
        return _without_data(original_float, inputs)
    inputs = _by_input(inputs, original_float)
    forms = _forms(original_float, inputs)
    keys = _keys(data, forms)
    taken = _taken(original_float, forms)
    readers: dict[str, Read] = {}
    names: dict[str, tuple[str, ...]] = {}
    for name, key in keys.items():
        given = inputs.get(name, Input())
        names[name], readers[name] = _reader(name, key, data[key], taken[name], given, sources)
    _check_counts({name: len(found) for name, found in names.items()})
    for name, key in keys.items():
        _check_set(key, data[key], names[name], readers[name], taken[name])

    def read(index: int) -> Feed:
        feed: dict[str, np.ndarray] = {}
        for name, reader in readers.items():
            feed |= fed_form(fed(reader(index), taken[name]), forms[name], name)
        return feed

    found = Samples(next(iter(names.values())), read)
    for name, key in keys.items():
        if data[key].random is None and "preprocessing" not in data[key].allow:
            _check_feeding(original_float, found, name, inputs.get(name, Input()), taken[name])
    return found


def _without_data(graph: Graph, inputs: Mapping[str, Input]) -> Samples:
    """None for a model that carries its scales; else noise, which only `skip` takes."""
    if carries_grids(graph):
        return Samples((), lambda index: {})
    made = samples(graph, inputs, {"*": Files(random=ENOUGH)}, {})
    names = tuple(f"{MADE_UP} {index}" for index in range(len(made)))
    return Samples(names, made.read)


def _by_input(inputs: Mapping[str, Input], graph: Graph) -> Mapping[str, Input]:
    """What is said of each model input, also where `*` says it."""
    names = [*trained_shapes(graph), *(str(value.name) for value in graph.inputs)]
    return {name: inputs[key] for name, key in entries(inputs, names).items()}


def _keys(data: Mapping[str, Files], forms: Mapping[str, Feeding]) -> Mapping[str, str]:
    """By model input, the key of its samples. Raises ProjectError for too many and too few."""
    for name in strangers(data, forms):
        hint = did_you_mean(name, forms)
        raise ProjectError(f"the model has no input `{name}`", Route(f"data.{name}"), hint)
    keys = entries(data, forms)
    for name in forms:
        if name not in keys:
            hint = f"add  {name}: {{files: ...}}"
            raise ProjectError(f"no samples for input `{name}`", Route("data"), hint)
    return keys


def _taken(graph: Graph, forms: Mapping[str, Feeding]) -> dict[str, Taken]:
    """The raw array each model input is made of."""
    types = {str(value.name): dtype(value) for value in graph.inputs}
    return {
        name: Taken(form.shape, types[form.inputs(name)[0]], form.offset)
        for name, form in forms.items()
    }


def _reader(
    name: str, key: str, how: Files, taken: Taken, given: Input, sources: SourceFiles
) -> tuple[tuple[str, ...], Read]:
    route = f"data.{key}"
    if (how.files is None) == (how.random is None):
        hint = "give `files`, or `random` for noise"
        raise ProjectError(f"input `{name}` needs either files or noise", Route(route), hint)
    if how.range is not None and (len(how.range) != 2 or how.range[0] >= how.range[1]):
        raise ProjectError("a range is [lowest, highest]", Route(f"{route}.range"))
    if how.random is not None:
        for step in ("transforms", "normalized"):
            if getattr(how, step):
                raise ProjectError("noise is fed as it is", Route(f"{route}.{step}"))
        return tuple(f"noise {index:04}" for index in range(how.random)), noise(name, how, taken)
    files = sources[f"{route}.files"]
    held = replace(taken, offset=0) if how.normalized else taken

    def read(index: int) -> np.ndarray:
        file = files[index]
        steps = f"{route}.transforms"
        sample = read_sample(file.read(), file.name, how, held, given.layout, steps)
        return raw(sample, given.mean, given.scale, given.layout) if how.normalized else sample

    return tuple(file.name for file in files), read


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
                Route(f"data.{name}"),
            )


def _check_set(key: str, how: Files, names: tuple[str, ...], read: Read, taken: Taken) -> None:
    if how.random is not None:
        return
    facts = [fact(file, read(index)) for index, file in enumerate(names)]
    low, high = how.range or ((0.0, 255.0) if taken.offset else (-np.inf, np.inf))
    slack = LOST * (high - low) if how.normalized else 0.0
    for finding in findings(facts, (low, high), slack):
        if finding.kind not in how.allow:
            raise ProjectError(
                finding.what,
                Route(f"data.{key}"),
                f"`allow: [{finding.kind}]` under `{key}:` if it is meant to be so",
            )


def _check_feeding(graph: Graph, found: Samples, name: str, how: Input, taken: Taken) -> None:
    mistake = preprocessing_mistake(graph, found, name, how, taken.offset)
    if mistake is None:
        return
    raise ProjectError(
        f"input `{name}` is not fed as the model was trained: {mistake.what}",
        Route(f"inputs.{name}"),
        f"{mistake.advice}; or `allow: [preprocessing]` under `data:`",
    )
