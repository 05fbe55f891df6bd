"""npumake debug inputs: the normalization with the sharpest outputs of the float model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from npumake import digest
from npumake.cli.screen import SCREEN
from npumake.errors import ProjectError

if TYPE_CHECKING:
    from npumake.debug.sharpness import SharpnessTrial
    from npumake.graph import Graph

TIE_FACTOR = 1.05  # sharpness within this factor counts as equal
NOT_APPLICABLE = "it needs a model with one float image input and one output of two or more classes"


def ways(arguments: argparse.Namespace) -> int:
    """Prints the trials. Raises ProjectError if the outputs cannot decide."""
    from npumake.debug.sharpness import clearly_better

    trials = _trials(arguments)
    if not trials:
        raise ProjectError(
            "the feed of the model cannot be checked", arguments.model, NOT_APPLICABLE
        )
    best = clearly_better(trials)
    if arguments.json:
        rows = [trial._asdict() for trial in trials]
        print(digest.text({"tried": rows, "better": best and best.yaml}, indent=1))
        return 0
    SCREEN.end()
    for trial in trials:
        print(f"{trial.sharpness:9.3f}  {trial.yaml or '(as in the project)'}")
    print(f"clearly sharper: {best.yaml}" if best else _unclear(trials))
    return 0


def _unclear(trials: Sequence[SharpnessTrial]) -> str:
    (own,) = (trial for trial in trials if not trial.yaml)
    if trials[0].sharpness <= TIE_FACTOR * own.sharpness:
        return "no other way is better"
    return f"sharper, but not clearly: {trials[0].yaml}; an evaluation with labels decides"


def _trials(arguments: argparse.Namespace) -> tuple[SharpnessTrial, ...]:
    """Tries the project's model and samples, which are built if needed. Raises PipelineError."""
    from npumake.borders.inputs import model_inputs
    from npumake.cli.precision_target import bring_up, place_of
    from npumake.data.samples import Samples, made_up
    from npumake.debug.sharpness import sharpest
    from npumake.graph import Graph
    from npumake.project.reader import built
    from npumake.project.sections import Input

    place = place_of(arguments.model, None)
    build = place.build
    samples = build.plan.node(place.comparison.inputs["samples"])
    model = build.plan.node(samples.inputs["original_float"])
    bring_up(build, {samples.name, model.name}, quiet=arguments.json)
    build.memory.save()
    graph = Graph.load(build.artifact(model))
    sections = {name: built(Input, section) for name, section in samples.params["inputs"].items()}
    inputs = [
        model_input
        for model_input in model_inputs(graph, sections).values()
        if model_input.name in _names(graph)
    ]
    sample_set = Samples.load(build.artifact(samples))
    if len(inputs) != 1 or made_up(sample_set):
        return ()
    (model_input,) = inputs
    return sharpest(
        graph, sample_set, model_input.name, model_input.section, model_input.spec.offset
    )


def _names(graph: Graph) -> set[str]:
    return {str(value.name) for value in graph.inputs}
