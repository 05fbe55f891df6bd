"""A detector's head as `model:` asks for it: cut by its hints, its box arithmetic marked."""

from __future__ import annotations

from pipeline.detection.distance import distance_to_box
from pipeline.detection.metadata import Metadata, with_outputs
from pipeline.detection.notes import mark_int16, mark_metadata
from pipeline.detection.split import split_outputs
from pipeline.errors import ProjectError, Route
from pipeline.graph import Graph, origin, shape
from pipeline.progress import tell
from pipeline.project.sections import Model


def with_head(graph: Graph, model: Model, metadata: Metadata | None) -> Graph:
    """The graph, described by `metadata` where there is one. Shapes must be known.

    Raises ProjectError where `metadata` speaks of another input, GraphError where it does not fit.
    """
    if metadata is not None:
        _check_input(graph, metadata)
    if model.split == "hints":
        graph, metadata = _split(graph, metadata)
    if metadata is not None:
        mark_metadata(graph, metadata)
    if model.int16 == "distance_to_box":
        mark_int16(graph, _boxes(graph))
    return graph


def _split(graph: Graph, metadata: Metadata | None) -> tuple[Graph, Metadata | None]:
    if metadata is None:
        hint = "name an edgefirst.json under `model.metadata`"
        raise ProjectError("the model holds no metadata", Route("model.split"), hint)
    if not metadata.hints:
        if not metadata.end2end:  # such a model needs none
            tell("`split: hints`, but the metadata has none: the outputs stay as they are")
        return graph, metadata
    graph, outputs = split_outputs(graph, metadata.hints)
    return graph, with_outputs(metadata, outputs)


def _boxes(graph: Graph) -> tuple[str, ...]:
    """The trained nodes: later graphs know these, whatever becomes of the nodes that stand here."""
    found = distance_to_box(graph)
    if not found:
        tell("no node makes boxes of distances: nothing is kept in 16 bits")
    trained = (name for node in found for name in origin(*graph.find(node)))
    return tuple(dict.fromkeys(trained))


def _check_input(graph: Graph, metadata: Metadata) -> None:
    expected = metadata.input_shape
    if expected and expected not in {shape(value) for value in graph.inputs}:
        given = ", ".join(str(list(shape(value))) for value in graph.inputs)
        what = f"the metadata speaks of an input of {list(expected)}, the model takes {given}"
        raise ProjectError(what, Route("model.metadata"))
