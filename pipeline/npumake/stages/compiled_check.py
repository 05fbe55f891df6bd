"""compiled_check: runs the compiled file on samples and compares it with the integer engine.

compiled in its own runtime · quantized in exact integers · optimized_float in float

A file that this machine cannot run is reported and passes. Without samples the input is noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Program
from npumake.compilers.handover import Handover
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples, evenly_spaced, made_up
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.compiled_file.check import NamedSample, check_file
from npumake.debug.compiled_file.runs import CompiledPart, why_not_run
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.errors import GraphError
from npumake.graph import Graph, dtype, shape
from npumake.project.sections import ComparisonSettings
from npumake.runtime.stripping import kept_notes, restored
from npumake.stages.compiled import Compiled
from npumake.targets.target import Target

NOTE_NOISE = "without samples the compiled file was run on noise"


def compiled_check(
    optimized_float: Graph,
    samples: Samples,
    quantized: Graph,
    compiled: Compiled,
    target: Target,
    comparison: ComparisonSettings,
    operators: Operators = NO_OPERATORS,
    handover: Handover | None = None,
) -> CompiledCheck:
    if reason := _reason(comparison, target, handover):
        return CompiledCheck(target.name, "", 0, (), skipped=reason)
    program = lowered(quantized, target.rounding, target.runnable)
    data, remaining = _whole(compiled, target, program)
    part = CompiledPart(quantized, program, target, data)
    feeds = list(_named_samples(samples, comparison, optimized_float))
    check = check_file(optimized_float, part, feeds, operators)
    is_noise = made_up(samples) or not samples.names
    return replace(check, notes=(*check.notes, *remaining, *([NOTE_NOISE] if is_noise else ())))


def _whole(compiled: Compiled, target: Target, program: Program) -> tuple[bytes, Sequence[str]]:
    """The file with its removed border restored, and notes on nodes that could not be removed."""
    if target.backend != "hybrid":
        return compiled.data, ()
    try:
        bundle = Bundle.from_bytes(compiled.data)
    except GraphError:  # reported when the file runs
        return compiled.data, ()
    whole = restored(bundle, program)
    return compiled.data if whole is bundle else whole.to_bytes(), kept_notes(bundle)


def _reason(comparison: ComparisonSettings, target: Target, handover: Handover | None) -> str:
    """Why the file is not run; empty if it is."""
    if comparison.compiled == "off":
        return "`comparison.compiled` is off"
    if handover is not None:
        return "it is from the vendor's tool, for its chip only"
    return why_not_run(target)


def _named_samples(
    samples: Samples, comparison: ComparisonSettings, graph: Graph
) -> Iterator[NamedSample]:
    """Evenly spaced samples; noise without samples."""
    requested = len(samples) if comparison.compiled == "all" else int(comparison.compiled)
    chosen = evenly_spaced(samples, requested)
    for name, feed in zip(chosen.names, chosen, strict=True):
        yield NamedSample(name, feed)
    if not samples.names:
        for seed in range(8 if comparison.compiled == "all" else requested):
            yield NamedSample(f"noise {seed}", _noise(graph, seed))


def _noise(graph: Graph, seed: int) -> Feeds:
    """Standard normal numbers; zeros for integers, which may be indices."""
    draw = np.random.default_rng(seed)
    return {
        str(value.name): draw.normal(size=shape(value)).astype(dtype(value))
        if np.dtype(dtype(value)).kind == "f"
        else np.zeros(shape(value), dtype(value))
        for value in graph.inputs
    }
