"""The ground truth of each file of a dataset: the number of its class, or its boxes.

    no `labels`      the name of the folder is the label
    .csv             a header with `file` and `label`, then one line per file
    .json            [{"file": ..., "label": ...}, ...] or {file: label}
    .json of COCO    npumake.evaluate.coco

If all labels are whole numbers, they are class numbers. Else the classes are the labels sorted by
name, or in the order of `classes`. Files are untrusted: every mistake is an error that names the
file and the line or entry.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from npumake.errors import Place, ProjectError, Route, did_you_mean
from npumake.evaluate.average_precision import Truths
from npumake.evaluate.coco import class_names_of_coco, is_coco, truths_of_coco
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.sections import Dataset

FILES, LABELS, CLASSES = (f"evaluation.dataset.{key}" for key in ("files", "labels", "classes"))
MAX_BYTES = 1 << 30  # of a file of labels
MAX_DIGITS = 9  # digits
LABELS_IN_JSON = 'write {"a.jpg": 3} or [{"file": "a.jpg", "label": 3}]'

Truth = int | Truths


class LabeledFile(NamedTuple):
    """The file of each input, in the model's order, and their ground truth."""

    files: tuple[SourceFile, ...]
    truth: Truth


class LabeledFiles(NamedTuple):
    """The files, and the class names by number; () for labels that are numbers."""

    items: tuple[LabeledFile, ...]
    class_names: tuple[str, ...]


class ReadLabels(NamedTuple):
    """The truth by the name of its file, and the class names by number."""

    truths: Mapping[str, Truth]
    class_names: tuple[str, ...]


class WrittenLabel(NamedTuple):
    """A label as written, and its place."""

    file: str
    label: str
    where: Place | str


def labeled_files(
    dataset: Dataset,
    sources: SourceFiles,
    limit: int | None = None,
    routes: Sequence[str] = (FILES,),
) -> LabeledFiles:
    """The labeled files in the order of their names, `limit` of them evenly spaced. With several
    inputs, one route each, the i-th files belong together.

    Raises ProjectError for unreadable labels, a file without a label, and inputs with different
    numbers of files.
    """
    files, labels = sources[routes[0]], sources.get(LABELS, ())
    for route in routes[1:]:
        if len(sources[route]) != len(files):
            message = f"{len(sources[route])} files, but {len(files)} of the first input"
            raise ProjectError(message, Route(route), "each sample needs one file per input")
    read = _by_folder(files, dataset) if not labels else _from_file(labels[0], files, dataset)
    truths = read.truths
    bare = _bare(truths)
    together = zip(*(sources[route] for route in routes), strict=True)
    labeled = [LabeledFile(group, _of(group[0], truths, bare, labels)) for group in together]
    count = min(limit or len(labeled), len(labeled))
    chosen = tuple(labeled[n * len(labeled) // count] for n in range(count))
    return LabeledFiles(chosen, read.class_names)


def _of(
    file: SourceFile,
    truths: Mapping[str, Truth],
    bare: Mapping[str, str],
    labels: Sequence[SourceFile],
) -> Truth:
    name = file.name if file.name in truths else bare.get(PurePosixPath(file.name).name)
    if name is None:
        message = f"`{file.name}` has no label"
        hint = "list only labeled files under `files`"
        raise ProjectError(message, labels[0].name if labels else Route(FILES), hint)
    return truths[name]


def _bare(names: Iterable[str]) -> dict[str, str]:
    """Base name -> full name, for base names that occur once."""
    by_name: dict[str, str] = {}
    twice: set[str] = set()
    for name in names:
        last = PurePosixPath(name).name
        twice |= {last} & by_name.keys()
        by_name[last] = name
    return {last: name for last, name in by_name.items() if last not in twice}


def _by_folder(files: Sequence[SourceFile], dataset: Dataset) -> ReadLabels:
    labels = []
    for file in files:
        folder = PurePosixPath(file.name).parent.name
        if not folder:
            hint = "one folder per label, files: val/*/*.jpg, or give `labels`"
            raise ProjectError(f"`{file.name}` is not in a label folder", Route(FILES), hint)
        labels.append(WrittenLabel(file.name, folder, Route(FILES)))
    return _numbered(labels, dataset)


def _from_file(labels: SourceFile, files: Sequence[SourceFile], dataset: Dataset) -> ReadLabels:
    suffix = PurePosixPath(labels.name).suffix.lower()
    if suffix not in (".csv", ".json"):
        hint = "labels are a .csv with  file,label  or a .json"
        raise ProjectError(f"`{labels.name}` is neither .csv nor .json", Route(LABELS), hint)
    if labels.size > MAX_BYTES:
        raise ProjectError(f"a file of more than {MAX_BYTES} bytes", labels.name)
    try:
        text = labels.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "save it as UTF-8"
        raise ProjectError(f"not UTF-8: {error.reason}", labels.name, hint) from error
    if suffix == ".csv":
        return _numbered(_of_csv(text, labels.name, dataset.label_column), dataset)
    document = _parsed(text, labels.name)
    if is_coco(document):
        pictures = {PurePosixPath(file.name).name for file in files}
        truths = truths_of_coco(document, labels.name, dataset.classes, pictures)
        return ReadLabels(truths, class_names_of_coco(document, labels.name, dataset.classes))
    return _numbered(_of_json(document, labels.name), dataset)


def _of_csv(text: str, name: str, label_column: str) -> Iterator[WrittenLabel]:
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        head = [cell.strip() for cell in next(rows, [])]
        columns = [_column(head, column, name) for column in ("file", label_column)]
        for row in rows:
            place = Place(name, rows.line_num, 1)
            if not row:
                continue
            if len(row) <= max(columns):
                hint = f"give each line a cell for {', '.join(head)}"
                raise ProjectError(f"{len(row)} cells, the first line has {len(head)}", place, hint)
            file, label = (row[column].strip() for column in columns)
            yield WrittenLabel(file, label, place)
    except csv.Error as error:
        hint = "close every quote that a cell opens"
        raise ProjectError(f"not a CSV: {error}", Place(name, rows.line_num, 1), hint) from error


def _column(head: Sequence[str], column: str, name: str) -> int:
    if column not in head:
        hint = did_you_mean(column, head) if head else "start with  file,label"
        raise ProjectError(f"no column `{column}`", Place(name, 1, 1), hint)
    return head.index(column)


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(name, error.lineno, error.colno)
        raise ProjectError(f"not JSON: {error.msg}", place, LABELS_IN_JSON) from error
    except (ValueError, RecursionError) as error:
        raise ProjectError(f"not JSON: {error}", name, LABELS_IN_JSON) from error


def _of_json(document: Any, name: str) -> Iterator[WrittenLabel]:
    if isinstance(document, dict):
        entries = [{"file": file, "label": label} for file, label in document.items()]
    elif isinstance(document, list):
        entries = document
    else:
        message = "neither a list nor an object of files and labels"
        raise ProjectError(message, name, LABELS_IN_JSON)
    for number, entry in enumerate(entries):
        where = f"{name}: {number}"
        if not isinstance(entry, dict) or not {"file", "label"} <= entry.keys():
            hint = 'write {"file": "a.jpg", "label": 3}'
            raise ProjectError("an entry without `file` and `label`", where, hint)
        file, label = entry["file"], entry["label"]
        if not isinstance(file, str) or type(label) not in (str, int):
            hint = 'write {"file": "a.jpg", "label": 3}'
            raise ProjectError("`file` must be text, `label` text or a whole number", where, hint)
        yield WrittenLabel(file, str(label), where)


def _numbered(labels: Iterable[WrittenLabel], dataset: Dataset) -> ReadLabels:
    """The class of every file. Raises ProjectError for a label that is not in `classes`."""
    written = list(labels)
    names = {truth.label for truth in written}
    are_numbers = all(_is_number(name) for name in names)
    order = list(dataset.classes) or ([] if are_numbers else sorted(names))
    numbers = {name: number for number, name in enumerate(order)}
    truths: dict[str, Truth] = {}
    for file, label, where in written:
        number = numbers.get(label, int(label) + dataset.label_offset if not order else None)
        if number is None:
            hint = did_you_mean(label, order)
            raise ProjectError(f"`{label}` is not in `classes`", where, hint)
        if truths.setdefault(file, number) != number:
            raise ProjectError(f"`{file}` has two labels", where, "keep one of its entries")
    return ReadLabels(truths, tuple(order))


def _is_number(label: str) -> bool:
    return label.isascii() and label.isdecimal() and len(label) <= MAX_DIGITS
