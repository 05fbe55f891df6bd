"""samples: what the model is fed during calibration, exactly.

    file → array → transforms → raw value → fed form → by graph input an array (samples, *shape)

Every sample is read once (npumake.data.input_samples) and kept aside. The set is looked at before
any of it is fed: too few, blank, duplicate or out of range fails the build, and so does a set that
the model's first BatchNormalization does not know; unless `allow:` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from npumake.borders.inputs import model_inputs
from npumake.data.input_samples import InputSamples, input_samples
from npumake.data.samples import MADE_UP, Feed, Samples
from npumake.data.spool import Spool
from npumake.debug.preprocessing import refuse_mistake
from npumake.detection.notes import tiling
from npumake.engine.parallel import side_by_side
from npumake.errors import ProjectError, Route
from npumake.graph import Graph
from npumake.progress import tell
from npumake.project.files import SourceFiles
from npumake.project.sections import Files, Input
from npumake.quant.qdq.brought_grids import carries_grids

ENOUGH = 8  # samples of noise where none are given


def samples(
    original_float: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    sources: SourceFiles,
) -> Samples:
    if not data:
        return _without_data(original_float, inputs)
    sets = input_samples(
        model_inputs(original_float, inputs), data, sources, tiling(original_float)
    )
    kept = [Spool(side_by_side(each.prepare, each.items())) for each in sets]
    for each, spool in zip(sets, kept, strict=True):
        each.refuse_findings(spool.facts)
        each.tell_casts(spool.facts)
    _refuse_unequal(sets, kept)
    origins = (each.snapshot.origin for each in sets if each.snapshot is not None)
    found = replace(_together(kept), origin=next(origins, {}))
    for each in sets:
        if each.how.random is None and "preprocessing" not in each.how.allow:
            _check_feeding(original_float, found, each)
    return found


def _check_feeding(graph: Graph, found: Samples, given: InputSamples) -> None:
    """Raises ProjectError for a mistake in how an input is fed; it is told where that is asked."""
    try:
        refuse_mistake(graph, found, given.input)
    except ProjectError as error:
        if "preprocessing" not in given.how.warn:
            raise
        tell(error.what)


def _without_data(graph: Graph, inputs: Mapping[str, Input]) -> Samples:
    """None for a model that carries its scales; else noise, which only `skip` takes."""
    if carries_grids(graph):
        return Samples((), lambda index: {})
    made = samples(graph, inputs, {"*": Files(random=ENOUGH)}, {})
    names = tuple(f"{MADE_UP} {index}" for index in range(len(made)))
    return Samples(names, made.read)


def _refuse_unequal(sets: Sequence[InputSamples], kept: Sequence[Spool]) -> None:
    """Inputs are fed together: the i-th sample of one with the i-th of another."""
    first, expected = sets[0].input.name, len(kept[0])
    for each, spool in zip(sets, kept, strict=True):
        if len(spool) != expected:
            what = (
                f"{len(spool)} samples for input `{each.input.name}`, but {expected} for `{first}`"
            )
            raise ProjectError(what, Route(f"data.{each.key}"))


def _together(kept: Sequence[Spool]) -> Samples:
    def read(index: int) -> Feed:
        return {name: array for spool in kept for name, array in spool.read(index).items()}

    return Samples(tuple(fact.name for fact in kept[0].facts), read)
