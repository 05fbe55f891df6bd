"""npumake debug inputs: which usual way of feeding makes the float model's answers sharpest."""

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

ALIKE = 1.05  # ways that are sharp to this factor are not told apart
NONE = "one input of pictures in floats, and one answer of two classes or more, is what tells"


def ways(given: argparse.Namespace) -> int:
    """Raises ProjectError where the model's answers cannot tell."""
    from npumake.debug.sharpness import clearly_better

    found = _tried(given)
    if not found:
        raise ProjectError("nothing can be told of how the model is fed", given.model, NONE)
    best = clearly_better(found)
    if given.json:
        shown = [one._asdict() for one in found]
        print(digest.text({"tried": shown, "better": best and best.yaml}, indent=1))
        return 0
    SCREEN.end()
    for one in found:
        print(f"{one.sharpness:9.3f}  {one.yaml or '(as the project says)'}")
    print(f"clearly sharper: {best.yaml}" if best else _unclear(found))
    return 0


def _unclear(found: Sequence[SharpnessTrial]) -> str:
    (own,) = (tried for tried in found if not tried.yaml)
    if found[0].sharpness <= ALIKE * own.sharpness:
        return "no other way is better"
    return f"sharper, but not clearly: {found[0].yaml}; an evaluation with labels tells"


def _tried(given: argparse.Namespace) -> tuple[SharpnessTrial, ...]:
    """Of the project's model and samples, made where they are not. Raises PipelineError."""
    from npumake.borders.inputs import model_inputs
    from npumake.cli.precision_target import bring_up, place_of
    from npumake.data.samples import Samples, made_up
    from npumake.debug.sharpness import sharpest
    from npumake.graph import Graph
    from npumake.project.reader import built
    from npumake.project.sections import Input

    place = place_of(given.model, None)
    build = place.build
    samples = build.plan.node(place.comparison.inputs["samples"])
    model = build.plan.node(samples.inputs["original_float"])
    bring_up(build, {samples.name, model.name}, quiet=given.json)
    build.memory.save()
    graph = Graph.load(build.artifact(model))
    said = {name: built(Input, each) for name, each in samples.params["inputs"].items()}
    fed = [one for one in model_inputs(graph, said).values() if one.name in _names(graph)]
    found = Samples.load(build.artifact(samples))
    if len(fed) != 1 or made_up(found):
        return ()
    (one,) = fed
    return sharpest(graph, found, one.name, one.said, one.taken.offset)


def _names(graph: Graph) -> set[str]:
    return {str(value.name) for value in graph.inputs}
