"""Applies `model.split` to a detector's head: cuts it at its hints, or describes it whole."""

from __future__ import annotations

from npumake.detection.describe import DECODED, DIMENSION, whole_outputs
from npumake.detection.distance import distance_to_box
from npumake.detection.inferred import bare_metadata, inferred_outputs
from npumake.detection.metadata import Metadata, SplitHint, with_outputs
from npumake.detection.notes import mark_boxes, mark_metadata
from npumake.detection.split import split_outputs
from npumake.errors import GraphError, ProjectError, Route
from npumake.graph import Graph, origin, shape
from npumake.progress import tell
from npumake.project.sections import ModelSection

CLASSIFICATION = "classification"  # a task without boxes
WHOLE = "the outputs stay whole"
NAME_ONE = "an edgefirst.json, named by the key `metadata`, defines the cuts"


def with_head(graph: Graph, model: ModelSection, metadata: Metadata | None) -> Graph:
    """The graph with its head split or described. Shapes must be known.

    Raises ProjectError if `metadata` has another input shape, GraphError if its hints do not fit.
    """
    if metadata is not None:
        _check_input(graph, metadata)
    if model.split == "hints":
        graph, metadata = _split(graph, metadata)
    elif metadata is not None:
        metadata = _described(graph, metadata)
    if metadata is not None:
        mark_metadata(graph, metadata)
    if names := _boxes(graph):
        mark_boxes(graph, names)
    return graph


def _split(graph: Graph, metadata: Metadata | None) -> tuple[Graph, Metadata]:
    """Cuts the head at its hints. A model without hints stays whole, as in the converters."""
    if metadata is None:
        tell(f"the model holds no metadata: {WHOLE}; {NAME_ONE}")
        metadata = bare_metadata(graph)
    elif not metadata.hints and not metadata.end2end:  # such a model needs none
        tell(f"the metadata has no split_hints: {WHOLE}")
    if anchored := [hint.target for hint in metadata.hints if hint.anchors_per_cell > 1]:
        tell(f"`{anchored[0]}` has several anchors per cell: {WHOLE}")
    if anchored or not metadata.hints:
        return graph, _described(graph, metadata)
    parts = dict.fromkeys(part.name for hint in metadata.hints for part in hint.boundaries)
    if unknown := [name for name in parts if name not in DECODED]:
        tell(f"no decoder is known for {', '.join(unknown)}: `outputs` only names what it is")
    try:
        graph, outputs = split_outputs(graph, metadata.hints)
    except GraphError as error:
        message = f"{error.where}: {error.what}" if error.where else error.what
        raise GraphError(message, Route("model.split"), error.hint) from error
    return graph, with_outputs(metadata, outputs)


def _described(graph: Graph, metadata: Metadata) -> Metadata:
    """The metadata with `outputs` of an uncut head, from its hints or else from its nodes."""
    if metadata.outputs:
        return metadata
    fits = bool(metadata.hints) and all(_fits(graph, hint) for hint in metadata.hints)
    outputs = whole_outputs(graph, metadata.hints) if fits else inferred_outputs(graph, metadata)
    if not any(output.type for output in outputs) and metadata.task != CLASSIFICATION:
        tell("no decoder is known for the outputs of this model: `outputs` only names them")
    return with_outputs(metadata, outputs, keep_hints=True)


def _fits(graph: Graph, hint: SplitHint) -> bool:
    """Whether the target holds only boxes, scores and coefficients, with one anchor per cell."""
    targets = {str(value.name): shape(value) for value in graph.outputs}
    dims = targets.get(hint.target, ())
    is_decodable = all(part.name in DIMENSION for part in hint.boundaries)
    end = hint.boundaries[-1].end
    return is_decodable and len(dims) == 3 and dims[:2] == (1, end) and hint.anchors_per_cell == 1


def _boxes(graph: Graph) -> tuple[str, ...]:
    """The box nodes by their names in the trained model, which later graphs keep as origins."""
    nodes = distance_to_box(graph)
    trained = (name for node in nodes for name in origin(*graph.find(node)))
    return tuple(dict.fromkeys(trained))


def _check_input(graph: Graph, metadata: Metadata) -> None:
    expected = metadata.input_shape
    if expected and expected not in {shape(value) for value in graph.inputs}:
        shapes = ", ".join(str(list(shape(value))) for value in graph.inputs)
        message = f"the metadata has an input of {list(expected)}, the model takes {shapes}"
        hint = "correct `input.shape` in it, or leave it out"
        raise ProjectError(message, Route("model.metadata"), hint)
