"""A manifest of a dump: `name,shape,dtype,layout,scale,zero_point` as JSON or CSV.

JSON is a list of objects, an object by name, or one of these under `tensors`. CSV has a header; a
shape is `1x64x56x56`. Only `name` is required; `file` names the file if it differs.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npumake.debug.dumps.naming import TYPES
from npumake.errors import ProjectError, did_you_mean

FILES = ("manifest.json", "tensors.json", "dump.json", "manifest.csv", "tensors.csv", "dump.csv")
MAX_BYTES = 1 << 24
MAX_RANK = 16
LAYOUTS = ("NCHW", "NHWC", "NCL", "NLC", "NCDHW", "NDHWC")
KEYS = ("name", "file", "shape", "dtype", "layout", "scale", "zero_point")


@dataclass(frozen=True)
class TensorDescription:
    """The manifest's entry for one tensor. Float value = scale * (code - zero_point)."""

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    layout: str | None = None
    scale: float | None = None
    zero_point: int = 0


def manifest(folder: Path) -> dict[str, TensorDescription]:
    """Entries by file without suffix, or else by name. Raises ProjectError for a damaged one."""
    paths = [folder / name for name in FILES if (folder / name).is_file()]
    for path in paths:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ProjectError("a link that leads out of the dump", str(path), "copy the file")
    if len(paths) > 1:
        raise ProjectError(f"two manifests: {paths[0].name} and {paths[1].name}", str(folder))
    return dict(_described(paths[0])) if paths else {}


def _described(path: Path) -> Iterator[tuple[str, TensorDescription]]:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ProjectError(f"more than {MAX_BYTES} bytes", str(path))
    try:
        text = data.decode()
        rows = list(csv.DictReader(io.StringIO(text)) if path.suffix == ".csv" else _rows(text))
    except (ValueError, TypeError, RecursionError, csv.Error) as error:
        raise ProjectError(f"not a manifest: {error}", str(path)) from error
    for row in rows:
        described = _description(row, path)
        key = str(row.get("file") or described.name)
        yield re.sub(r"\.(npy|bin|raw|dat|txt|tensor)$", "", key), described


def _rows(text: str) -> Iterator[Mapping[str, Any]]:
    document = json.loads(text)
    if isinstance(document, dict) and isinstance(document.get("tensors"), dict | list):
        document = document["tensors"]
    if isinstance(document, dict):
        document = [{"name": name, **entry} for name, entry in document.items()]
    if not isinstance(document, list) or not all(isinstance(entry, dict) for entry in document):
        raise ValueError("a list of tensors is expected")
    yield from document


def _description(row: Mapping[str, Any], path: Path) -> TensorDescription:
    name = row.get("name") or row.get("file")
    if not isinstance(name, str):
        hint = f"its columns are {', '.join(KEYS)}"
        raise ProjectError("a tensor without `name`", str(path), hint)
    try:
        return TensorDescription(
            name,
            _shape(row.get("shape")),
            _dtype(row.get("dtype")),
            _layout(row.get("layout")),
            _scale(row.get("scale")),
            int(row.get("zero_point") or 0),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise ProjectError(f"`{name}`: {error}", str(path)) from error


def _shape(entry: Any) -> tuple[int, ...] | None:
    if entry is None or entry == "":
        return None
    sizes = re.findall(r"\d+", entry) if isinstance(entry, str) else entry
    shape = tuple(int(size) for size in sizes)
    if len(shape) > MAX_RANK or min(shape, default=1) < 1:
        raise ValueError(f"no shape: {entry}")
    return shape


def _dtype(entry: Any) -> str | None:
    if entry is None or entry == "":
        return None
    if str(entry).lower() not in TYPES:
        raise ValueError(f"unknown type `{entry}`, {did_you_mean(str(entry), TYPES)}")
    return TYPES[str(entry).lower()]


def _layout(entry: Any) -> str | None:
    if entry is None or entry == "":
        return None
    if str(entry).upper() not in LAYOUTS:
        raise ValueError(f"unknown layout `{entry}`, {did_you_mean(str(entry), LAYOUTS)}")
    return str(entry).upper()


def _scale(entry: Any) -> float | None:
    if entry is None or entry == "":
        return None
    scale = float(entry)
    if not (math.isfinite(scale) and scale > 0.0):
        raise ValueError(f"a scale of {entry}")
    return scale
