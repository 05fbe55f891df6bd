"""COCO's instances → the boxes on each picture.

    images        [{"id": 1, "file_name": "a.jpg"}, ...]
    annotations   [{"image_id": 1, "category_id": 3, "bbox": [left, top, width, height],
                    "segmentation": polygons or runs, "iscrowd": 0}, ...]
    categories    [{"id": 3, "name": "car"}, ...]

Boxes are in pixels of the picture. The model's classes are the categories in the order of their
ids, unless `classes` gives another order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from npumake.errors import ProjectError, did_you_mean
from npumake.evaluate.average_precision import Truths
from npumake.evaluate.outlines import Outline

PARTS = ("images", "annotations", "categories")
MAX_PIXELS = 1e9  # pixels


def is_coco(document: Any) -> bool:
    return isinstance(document, dict) and all(isinstance(document.get(p), list) for p in PARTS)


def truths_of_coco(
    document: Mapping[str, Any], name: str, classes: Sequence[str], pictures: Collection[str]
) -> dict[str, Truths]:
    """Truths by `file_name` for the `pictures` (names without folders), in file order.

    Raises ProjectError, with the place, for a malformed entry and for an unknown class.
    """
    numbers = _classes(document, name, classes)
    files = dict(_files(document, name))
    used = {key for key, file in files.items() if PurePosixPath(file).name in pictures}
    boxes: dict[int, list[list[float]]] = {key: [] for key in files if key in used}
    labels: dict[int, list[int]] = {key: [] for key in boxes}
    crowds: dict[int, list[bool]] = {key: [] for key in boxes}
    outlines: dict[int, list[Outline]] = {key: [] for key in boxes}
    for where, entry in _entries(document, "annotations", name):
        image, category = (_whole(entry, key, where) for key in ("image_id", "category_id"))
        if image not in files:
            hint = "add it to `images`, or remove the annotation"
            raise ProjectError(f"no image has the id {image}", where, hint)
        if category not in numbers:
            hint = did_you_mean(str(category), map(str, numbers))
            raise ProjectError(f"no category has the id {category}", where, hint)
        if image in boxes:
            boxes[image].append(_corners(entry, where))
            labels[image].append(numbers[category])
            crowds[image].append(bool(entry.get("iscrowd", 0)))
            outlines[image].append(Outline(entry.get("segmentation"), where))
    return {
        files[key]: Truths(
            np.array(boxes[key], np.float64).reshape(-1, 4),
            np.array(labels[key], np.int64),
            np.array(crowds[key], bool),
            tuple(outlines[key]),
        )
        for key in boxes
    }


def class_names_of_coco(
    document: Mapping[str, Any], name: str, classes: Sequence[str]
) -> tuple[str, ...]:
    """The names by class of the model. Raises ProjectError like `truths_of_coco`."""
    if classes:
        return tuple(classes)
    numbers = _classes(document, name, classes)
    by_number = {numbers[entry["id"]]: entry.get("name", "") for entry in document["categories"]}
    return tuple(str(by_number[number]) for number in sorted(by_number))


def _classes(document: Mapping[str, Any], name: str, classes: Sequence[str]) -> dict[int, int]:
    """Category id -> class of the model."""
    ids: dict[int, str] = {}
    for where, entry in _entries(document, "categories", name):
        key, label = _whole(entry, "id", where), entry.get("name", "")
        if key in ids:
            hint = "give each category an `id` of its own"
            raise ProjectError(f"two categories have the id {key}", where, hint)
        if classes and label not in classes:
            hint = did_you_mean(str(label), classes)
            raise ProjectError(f"`{label}` is not in `classes`", where, hint)
        ids[key] = label
    if classes:
        return {key: list(classes).index(label) for key, label in ids.items()}
    return {key: number for number, key in enumerate(sorted(ids))}


def _files(document: Mapping[str, Any], name: str) -> Iterator[tuple[int, str]]:
    for where, entry in _entries(document, "images", name):
        if not isinstance(entry.get("file_name"), str):
            hint = 'such as {"id": 1, "file_name": "a.jpg"}'
            raise ProjectError("an image without `file_name`", where, hint)
        yield _whole(entry, "id", where), entry["file_name"]


def _entries(
    document: Mapping[str, Any], part: str, name: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, entry in enumerate(document[part]):
        where = f"{name}: {part}.{number}"
        if not isinstance(entry, dict):
            raise ProjectError("not an object", where, "write it between { and }")
        yield where, entry


def _whole(entry: Mapping[str, Any], key: str, where: str) -> int:
    value = entry.get(key)
    if type(value) is not int:
        raise ProjectError(f"`{key}` must be a whole number", where, "without quotes")
    return value


def _corners(entry: Mapping[str, Any], where: str) -> list[float]:
    box = entry.get("bbox")
    if not isinstance(box, list) or not _is_box(box):
        hint = "such as [10, 20, 30, 40]; sides are 0 or more"
        raise ProjectError("`bbox` must be [left, top, width, height] in pixels", where, hint)
    left, top, width, height = map(float, box)
    return [left, top, left + width, top + height]


def _is_box(box: list[Any]) -> bool:
    return len(box) == 4 and all(map(_is_length, box)) and min(box[2:]) >= 0


def _is_length(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and abs(value) <= MAX_PIXELS
