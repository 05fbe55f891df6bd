"""What later stages must know of a detector, noted in the graph: its metadata, as an ONNX file
carries it, and the nodes that make boxes of distances."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

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
    """What the graph carries; None where it carries nothing. Raises ProjectError."""
    text = graph.metadata.get(NOTE)
    return None if text is None else read_metadata(text, f"{NOTE} in the model")


def labels_of(graph: Graph) -> tuple[str, ...]:
    """The classes by index, as the metadata or else the model says. Raises ProjectError."""
    metadata = metadata_of(graph)
    if metadata is not None and metadata.classes:
        return metadata.classes
    where = f"{LABELS} in the model"
    words, test = TEXTS
    labels = read_json(graph.metadata.get(LABELS, "[]"), where)
    if not test(labels):
        raise ProjectError(f"it must be {words}", where)
    return tuple(labels)


def carried(graph: Graph) -> Mapping[str, str]:
    """The notes that came with a model and go with what is made of it."""
    keys = (NOTE, LABELS, OPERATORS)
    return {key: graph.metadata[key] for key in keys if key in graph.metadata}


def tiling(graph: Graph) -> Tiling | None:
    metadata = metadata_of(graph)
    return metadata.tiling if metadata else None


def coefficient_outputs(graph: Graph) -> frozenset[str]:
    """The outputs that are mask coefficients and nothing else."""
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
    """Note of the samples what a converter records; nothing of samples in files of their own."""
    if origin:
        graph.set_metadata({ORIGIN: json.dumps(origin)})


def origin_of_samples(graph: Graph) -> dict[str, Json]:
    """What `mark_origin` noted, by keys of a converter's block."""
    origin: dict[str, Json] = json.loads(graph.metadata.get(ORIGIN, "{}"))
    return origin


def mark_boxes(graph: Graph, names: Iterable[str]) -> None:
    """Note the nodes that make boxes, by the names they have in the trained model."""
    graph.set_metadata({BOXES: json.dumps(list(names))})


def box_nodes(graph: Graph) -> tuple[str, ...]:
    """Their names in the trained model; `graph.find` knows them in every graph."""
    return tuple(json.loads(graph.metadata.get(BOXES, "[]")))
