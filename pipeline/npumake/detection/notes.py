"""A detector's metadata and box nodes, recorded in the graph for later stages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from npumake.detection.class_names import class_names, printed_names
from npumake.detection.entry import TEXTS, read_json
from npumake.detection.metadata import NOTE, Metadata, Tiling, read_metadata
from npumake.digest import Json
from npumake.errors import ProjectError
from npumake.graph import OPERATORS, Graph

BOXES = "npumake.boxes"
ORIGIN = "npumake.samples"
COEFFICIENTS = "mask_coefs"
LABELS = "labels"  # a JSON list, beside the metadata


def mark_metadata(graph: Graph, metadata: Metadata) -> None:
    labels = {LABELS: json.dumps(metadata.classes)} if metadata.classes else {}
    graph.set_metadata({NOTE: metadata.to_json(), **labels})


def metadata_of(graph: Graph) -> Metadata | None:
    """The metadata in the graph, or None. Raises ProjectError."""
    text = graph.metadata.get(NOTE)
    return None if text is None else read_metadata(text, f"{NOTE} in the model")


def labels_of(graph: Graph) -> tuple[str, ...]:
    """The class names by index, of the metadata, of the model's labels, or else of the `names` of
    an exporter.

    Raises ProjectError for unreadable labels beside metadata. Of a model without, they may mean
    anything, and name nothing.
    """
    metadata = metadata_of(graph)
    if metadata is not None and LABELS in graph.metadata:
        return metadata.classes or _strict_labels(graph.metadata[LABELS])
    if metadata is not None and metadata.classes:
        return metadata.classes
    return printed_names(graph.metadata.get(LABELS, "")) or class_names(graph.metadata)


def _strict_labels(text: str) -> tuple[str, ...]:
    where = f"{LABELS} in the model"
    words, test = TEXTS
    labels = read_json(text, where)
    if not test(labels):
        raise ProjectError(f"it must be {words}", where)
    return tuple(labels)


def carried(graph: Graph) -> Mapping[str, str]:
    """The model's own notes, which artifacts made from it keep. `names` of an exporter are LABELS,
    unless it has both."""
    keys = (NOTE, LABELS, OPERATORS)
    names = class_names(graph.metadata)
    labels = {LABELS: json.dumps(names)} if names else {}
    return labels | {key: graph.metadata[key] for key in keys if key in graph.metadata}


def tiling(graph: Graph) -> Tiling | None:
    metadata = metadata_of(graph)
    return metadata.tiling if metadata else None


def coefficient_outputs(graph: Graph) -> frozenset[str]:
    """The outputs that hold only mask coefficients."""
    metadata = metadata_of(graph)
    outputs = metadata.outputs if metadata else ()
    kinds = (output for output in outputs if output.type == COEFFICIENTS)
    return frozenset(tensor.name for output in kinds for tensor in output.tensors)


def joins_coefficients(graph: Graph) -> bool:
    """Whether mask coefficients leave the model as a part of another output."""
    metadata = metadata_of(graph)
    kinds = {output.type for output in metadata.outputs} if metadata else set()
    return "protos" in kinds and COEFFICIENTS not in kinds


def mark_origin(graph: Graph, origin: Mapping[str, Json]) -> None:
    """Records the origin of the samples for a converter's block; empty for single files."""
    if origin:
        graph.set_metadata({ORIGIN: json.dumps(origin)})


def origin_of_samples(graph: Graph) -> dict[str, Json]:
    """The record of `mark_origin`, by keys of a converter's block."""
    origin: dict[str, Json] = json.loads(graph.metadata.get(ORIGIN, "{}"))
    return origin


def mark_boxes(graph: Graph, names: Iterable[str]) -> None:
    """Records the nodes that compute boxes, by their names in the trained model."""
    graph.set_metadata({BOXES: json.dumps(list(names))})


def box_nodes(graph: Graph) -> tuple[str, ...]:
    """The names of the box nodes in the trained model; `graph.find` finds them in any stage."""
    return tuple(json.loads(graph.metadata.get(BOXES, "[]")))
