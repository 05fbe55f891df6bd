"""samples: the exact input values of the model during calibration.

    file → array → transforms → raw value → fed form → by graph input an array (samples, *shape)

Every sample is read once (npumake.data.input_samples) and spooled. The set is checked first: too
few, blank, duplicate or out-of-range samples fail the build (npumake.data.lint), and so does a set
that contradicts the model's first BatchNormalization. `allow:` overrides each check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from npumake.borders.inputs import model_inputs
from npumake.data.input_samples import InputSamples, input_samples
from npumake.data.sample_lint import refuse_findings
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

NOISE_SAMPLES = 8  # without data


def samples(
    original_float: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    sources: SourceFiles,
) -> Samples:
    if not data:
        return _without_data(original_float, inputs)
    _refuse_frozen(data, inputs)
    sets = input_samples(
        model_inputs(original_float, inputs), data, sources, tiling(original_float)
    )
    spools = [Spool(side_by_side(source.prepare, source.items())) for source in sets]
    _refuse_unequal(sets, spools)
    for source, spool in zip(sets, spools, strict=True):
        source.tell_casts(spool.facts)
    refuse_findings(sets, [spool.facts for spool in spools])
    origins = (source.snapshot.origin for source in sets if source.snapshot is not None)
    whole = replace(_together(spools), origin=next(origins, {}))
    for source in sets:
        if source.how.random is None and "preprocessing" not in source.how.allow:
            _check_feeding(original_float, whole, source)
    return whole


def _refuse_frozen(data: Mapping[str, Files], inputs: Mapping[str, Input]) -> None:
    """Raises ProjectError for samples of an input that a `value` makes a constant."""
    for name in data:
        if inputs.get(name, Input()).value is not None:
            message = f"samples for input `{name}`, which is a constant by its `value`"
            raise ProjectError(message, Route(f"data.{name}"), "remove them, or the `value`")


def _check_feeding(graph: Graph, samples: Samples, source: InputSamples) -> None:
    """Raises ProjectError for a preprocessing mistake; a note if `warn` has `preprocessing`."""
    try:
        refuse_mistake(graph, samples, source.input, source.allowance("preprocessing"))
    except ProjectError as error:
        if "preprocessing" not in source.how.warn:
            raise
        tell(error.what)


def _without_data(graph: Graph, inputs: Mapping[str, Input]) -> Samples:
    """No samples for a model with its own scales; else noise, which only `skip` accepts."""
    if carries_grids(graph):
        return Samples((), lambda index: {})
    noise = samples(graph, inputs, {"*": Files(random=NOISE_SAMPLES)}, {})
    names = tuple(f"{MADE_UP} {index}" for index in range(len(noise)))
    return Samples(names, noise.read)


def _refuse_unequal(sets: Sequence[InputSamples], spools: Sequence[Spool]) -> None:
    """Raises ProjectError for inputs with different numbers of samples: they are fed in pairs."""
    first, expected = sets[0].input.name, len(spools[0])
    for own, spool in zip(sets, spools, strict=True):
        if len(spool) != expected:
            message = (
                f"{len(spool)} samples for input `{own.input.name}`, but {expected} for `{first}`"
            )
            raise ProjectError(message, Route(f"data.{own.key}"))


def _together(spools: Sequence[Spool]) -> Samples:
    def read(index: int) -> Feed:
        return {name: array for spool in spools for name, array in spool.read(index).items()}

    return Samples(tuple(fact.name for fact in spools[0].facts), read)
