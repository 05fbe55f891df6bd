"""A detector's head as `model:` asks for it: cut by its hints or described as it is."""

from __future__ import annotations

from pipeline.detection.describe import whole_outputs
from pipeline.detection.distance import distance_to_box
from pipeline.detection.metadata import Metadata, with_outputs
from pipeline.detection.notes import mark_boxes, mark_metadata
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
    elif metadata is not None:
        metadata = _described(graph, metadata)
    if metadata is not None:
        mark_metadata(graph, metadata)
    if found := _boxes(graph):
        mark_boxes(graph, found)
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


def _described(graph: Graph, metadata: Metadata) -> Metadata:
    """With the `outputs` of a head that stays whole, where its hints say what they are."""
    if metadata.outputs or not metadata.hints:
        return metadata
    targets = {str(value.name): shape(value) for value in graph.outputs}
    for hint in metadata.hints:
        dims = targets.get(hint.target, ())
        if len(dims) != 3 or dims[:2] != (1, hint.boundaries[-1].end) or hint.anchors_per_cell > 1:
            return metadata
    return with_outputs(metadata, whole_outputs(graph, metadata.hints), keep_hints=True)


def _boxes(graph: Graph) -> tuple[str, ...]:
    """The trained nodes: later graphs know these, whatever becomes of the nodes that stand here."""
    found = distance_to_box(graph)
    trained = (name for node in found for name in origin(*graph.find(node)))
    return tuple(dict.fromkeys(trained))


def _check_input(graph: Graph, metadata: Metadata) -> None:
    expected = metadata.input_shape
    if expected and expected not in {shape(value) for value in graph.inputs}:
        given = ", ".join(str(list(shape(value))) for value in graph.inputs)
        what = f"the metadata speaks of an input of {list(expected)}, the model takes {given}"
        raise ProjectError(what, Route("model.metadata"))
