"""Metadata that do not fit a model's outputs: each mistake is one error, with a hint that helps."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from detection.test_anchors import MODELS, PICTURES, SIZE, anchored
from detection.test_split import graph, hints
from npumake.detection.decode import PARTS, Rules, decode
from npumake.detection.describe import whole_outputs
from npumake.detection.metadata import BOXES, read_metadata
from npumake.detection.outputs import DetectorOutput, output_document
from npumake.detection.split import split_outputs
from npumake.digest import canonical
from npumake.errors import GraphError, PipelineError
from npumake.graph import Graph, shape
from npumake.recognition.families import family_of
from recognized_models import facts

Shapes = Mapping[str, tuple[int, ...]]
VALUES: dict[str, Sequence[Any]] = {
    "name": ("nope", ""),
    "type": (
        *("boxes", "scores", "detection", "detections", "protos", "mask_coefs", "objectness"),
        "landmarks",
    ),
    "decoder": ("yolox", "nanodet", "fastestdet", "ssd", "yunet", "scrfd", "another"),
    "encoding": ("dfl", "direct", "ltrb", "anchor"),
    "score_format": ("per_class", "obj_x_class"),
    "normalized": (True, False),
    "shape": ([1], [1, 4], [1, 4, 8], [1, 8, 4], [1, 4, 8, 8], [], [2, 4, 8]),
    "dshape": (None, [], [{"batch": 1}], [{"batch": 1, "padding": 2}]),
    "stride": (None, 8, [8, 8]),
    "anchors": (None, [], [[1, 2, 3]], [{"stride": 8, "sizes": [4]}], [[0.5, 0.5, 0.1, 0.1]]),
    "activation_required": ("sigmoid", "softmax"),
    "quantization": (
        None,
        {},
        {"scale": [0.1, 0.2], "zero_point": 0},
        {"scale": 0.1, "zero_point": 0, "dtype": "int8"},
    ),
    "outputs": (None, []),
    "variances": ([1], "x"),
    "order": ("yxhw",),
}


class Head(NamedTuple):
    """Metadata that fit, with the shapes of the outputs and (height, width) of the input."""

    document: dict[str, Any]
    shapes: Shapes
    size: tuple[int, int]


def heads() -> Iterator[tuple[str, Head]]:
    for name, outputs in MODELS.items():
        size = PICTURES.get(name, SIZE)
        _, family = family_of(facts((1, 3, *size), outputs))
        yield name, Head(json.loads(canonical(family.metadata)), outputs, size)
    yield (
        "anchors",
        Head(anchored([[0.5, 0.5, 0.1, 0.1]] * 2, 2), {"b": (1, 2, 4), "s": (1, 2, 2)}, SIZE),
    )
    yield "whole", described(graph(), whole_outputs(graph(), hints()))
    for strides in (False, True):
        yield f"split {strides}", described(*split_outputs(graph(), hints(strides=strides)))
    rows = {"name": "d", "type": "detections", "shape": [1, 3, 6], "normalized": False}
    yield "end to end", Head({"schema_version": 2, "outputs": [rows]}, {"d": (1, 3, 6)}, SIZE)


def described(cut: Graph, outputs: Sequence[DetectorOutput]) -> Head:
    document = {"schema_version": 2, "outputs": [output_document(output) for output in outputs]}
    return Head(document, {str(value.name): shape(value) for value in cut.outputs}, (64, 64))


HEADS = dict(heads())


def entries(document: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The lists of entries: the logical outputs, and the children of each."""
    outputs = document["outputs"]
    return [outputs, *(entry["outputs"] for entry in outputs if entry.get("outputs"))]


def changed(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The document with one entry less, or one key with another value."""
    for number, siblings in enumerate(entries(document)):
        for index, entry in enumerate(siblings):
            copied = copy.deepcopy(document)
            del entries(copied)[number][index]
            yield f"without {number}.{index}", copied
            for key, values in VALUES.items():
                for value in (value for value in values if value != entry.get(key)):
                    copied = copy.deepcopy(document)
                    entries(copied)[number][index][key] = value
                    yield f"{number}.{index}.{key} {value}", copied


def reshaped(head: Head) -> Iterator[tuple[str, Head]]:
    """One output of another shape, which its entry follows."""
    for name, dims in head.shapes.items():
        others = {(*dims[:-1], dims[-1] + 1), (dims[0], dims[1] + 1, *dims[2:]), dims[1:]}
        for other in sorted(others - {dims}):
            copied = copy.deepcopy(head.document)
            for entry in (entry for siblings in entries(copied) for entry in siblings):
                if entry.get("name") == name and not entry.get("outputs"):
                    entry["shape"] = list(other)
                    entry.pop("dshape", None)
            yield f"{name} {other}", Head(copied, {**head.shapes, name: other}, head.size)


def mistakes(head: Head) -> Iterator[tuple[str, Head]]:
    yield from ((what, head._replace(document=new)) for what, new in changed(head.document))
    yield from reshaped(head)


def decoded(head: Head) -> None:
    metadata = read_metadata(json.dumps(head.document), "edgefirst.json")
    arrays = {name: np.zeros(dims, np.float32) for name, dims in head.shapes.items()}
    decode(arrays, metadata.outputs, head.size, Rules(0.0, candidates=1))


def error_of(head: Head) -> PipelineError | None:
    try:
        decoded(head)
    except PipelineError as error:
        return error
    return None


@pytest.mark.parametrize("name", HEADS)
def test_metadata_that_fit_decode(name: str) -> None:
    assert error_of(HEADS[name]) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADS)
def test_a_mistake_decodes_or_is_an_error_with_a_hint(name: str) -> None:
    errors = {what: error_of(head) for what, head in mistakes(HEADS[name])}
    refused = {what: error for what, error in errors.items() if error is not None}
    assert refused
    assert {what: error.what for what, error in refused.items() if not error.hint} == {}


DECODED = {*BOXES, *PARTS, "protos"}
MISSPELT = [(name, at) for name, head in HEADS.items() for at in range(len(entries(head.document)))]


def tensors(head: Head, at: int) -> list[dict[str, Any]]:
    """Of the list of entries, those that a decoder reads."""
    siblings = entries(head.document)[at]
    is_child = at > 0
    return [
        e for e in siblings if e["name"] in head.shapes and (is_child or e.get("type") in DECODED)
    ]


@pytest.mark.parametrize(("name", "at"), MISSPELT)
def test_the_hint_for_a_misspelt_output_mends_it(name: str, at: int) -> None:
    for number, right in enumerate(tensors(HEADS[name], at)):
        head = copy.deepcopy(HEADS[name])
        entry = tensors(head, at)[number]
        entry["name"] = f"{right['name']}x"
        with pytest.raises(GraphError, match=f"no output `{entry['name']}`") as caught:
            decoded(head)
        (entry["name"],) = re.findall(r"did you mean `(.*)`\?", caught.value.hint)
        decoded(head)
