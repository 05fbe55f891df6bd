"""`--labels` of `npumake new`: class names, or the labels of the pictures."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from npumake.errors import ProjectError

NAMES = (".txt", ".names", ".labels")
TRUTHS = (".csv", ".json")
LABEL_COLUMNS = ("label", "class_index", "class", "category", "target", "index")
MAX_BYTES = 1 << 28  # COCO's instances of a year have 450 MB, those of its validation set 20
KINDS = "class names: .txt, .names, .yaml; labels of the pictures: .csv, or COCO's .json"


class LabelsFile(NamedTuple):
    """Class names by index, (); the column of a .csv that holds the labels; whether boxes."""

    classes: tuple[str, ...] = ()
    column: str = ""
    has_boxes: bool = False

    @property
    def is_truth(self) -> bool:
        return bool(self.column) or self.has_boxes


def read_labels(file: Path) -> LabelsFile:
    """Raises ProjectError for a missing file, and for one that is none of KINDS."""
    if not file.is_file():
        raise ProjectError("no such file", str(file), KINDS)
    if file.stat().st_size > MAX_BYTES:
        raise ProjectError(f"a file of more than {MAX_BYTES} bytes", str(file), KINDS)
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    suffix = file.suffix.lower()
    if suffix == ".csv":
        return _csv(text, file)
    if suffix == ".json":
        return _json(text, file)
    if suffix in (".yaml", ".yml"):
        return LabelsFile(_yaml(file))
    if suffix in NAMES or not suffix:
        return LabelsFile(tuple(line.strip() for line in text.splitlines() if line.strip()))
    raise ProjectError(f"labels in a `{suffix}` file", str(file), KINDS)


def _csv(text: str, file: Path) -> LabelsFile:
    head = next(csv.reader(text.splitlines()), [])
    columns = [name.strip() for name in head]
    column = next((name for name in LABEL_COLUMNS if name in columns), "")
    if "file" not in columns or not column:
        hint = f"its first line names the columns: file,label; it is {','.join(columns)}"
        raise ProjectError("no columns `file` and `label`", str(file), hint)
    return LabelsFile(column=column)


def _json(text: str, file: Path) -> LabelsFile:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProjectError(f"not readable JSON: {error}", str(file)) from None
    if isinstance(document, dict) and "annotations" in document:
        kinds = document.get("categories", [])
        ordered = sorted((k for k in kinds if isinstance(k, dict)), key=lambda k: k.get("id", 0))
        return LabelsFile(tuple(str(k.get("name", "")) for k in ordered), has_boxes=True)
    if isinstance(document, list) and all(isinstance(name, str) for name in document):
        return LabelsFile(tuple(document))
    return LabelsFile(column="label")


def _yaml(file: Path) -> tuple[str, ...]:
    """The list of names, or `names:` of a YOLO data set. Raises ProjectError."""
    from npumake.project.document import read_document

    data = read_document(file).data
    names = data.get("names") if isinstance(data, Mapping) else data
    if isinstance(names, Mapping):
        names = [names[key] for key in sorted(names, key=lambda key: int(str(key)))]
    if not isinstance(names, list):
        raise ProjectError("no `names`", str(file), KINDS)
    return tuple(map(str, names))
