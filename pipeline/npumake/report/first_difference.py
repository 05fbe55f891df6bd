"""The first difference of two artifacts of one stage: the tensor, in the order of the file.

.onnx     nodes in order: operator, constants; then graph outputs
.hybrid   instructions in order: operator, constants; then types and grids of tensors
.tflite   tensors in order: type, shape, values, grid
.npz      arrays in order          .json   keys in order          others   the first byte
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from npumake.bundle.archive import Bundle
from npumake.digest import Json
from npumake.errors import PipelineError
from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.frontends.tflite.schema import TFLiteTensor, read_network
from npumake.graph import array, parse
from npumake.project.files import model_bytes, refuse_long

Part = tuple[str, Any]  # a name and what is compared: an array, a text, a number


def first_difference(before: Path, after: Path) -> str:
    """A sentence; empty for equal bytes. An unreadable file is compared by its bytes."""
    if before.read_bytes() == after.read_bytes():
        return ""
    read = PARTS.get(after.suffix)
    try:
        difference = (
            _first(read(before), read(after)) if read and before.suffix == after.suffix else ""
        )
    except (PipelineError, MalformedError, ValueError, OSError):
        difference = ""
    return difference or _first_byte(before, after)


def _first(before: Iterable[Part], after: Iterable[Part]) -> str:
    for old, new in zip_longest(before, after):
        if old is None or new is None:
            side = "only the rebuilt one has" if old is None else "only the first one has"
            return f"{side} {(old or new)[0]}"
        if old[0] != new[0]:
            return f"{old[0]} → {new[0]}"
        if text := _difference(old[1], new[1]):
            return f"{old[0]}: {text}"
    return ""


def _difference(old: Any, new: Any) -> str:
    """How two values differ; empty for equal ones. NaN equals NaN."""
    if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray):
        return "" if old == new else f"{_short(old)} → {_short(new)}"
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        return f"{old.dtype}{list(old.shape)} → {new.dtype}{list(new.shape)}"
    is_float = old.dtype.kind == "f"
    unequal = (old != new) & ~(np.isnan(old) & np.isnan(new)) if is_float else old != new
    places = np.argwhere(unequal)
    if not len(places):
        return ""
    index = tuple(places[0].tolist())
    values = f"{old[index]} → {new[index]}"
    return f"{len(places)} of {old.size} values, first at {list(index)}: {values}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _first_byte(before: Path, after: Path) -> str:
    old, new = before.read_bytes(), after.read_bytes()
    if len(old) == len(new):
        place = next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
        return f"byte {place:,} of {len(old):,}"
    return f"{len(old):,} → {len(new):,} bytes"


def _graph_parts(path: Path) -> Iterator[Part]:
    graph = parse(model_bytes(path), path.name)
    for node in graph.nodes():
        yield f"node `{node.name}`", node.op_type
        for value in node.inputs:
            if value is not None and (values := array(value)) is not None:
                yield f"tensor `{value.name}` of `{node.name}`", values
    for value in graph.outputs:
        yield f"output `{value.name}`", f"{value.dtype} {value.shape}"


def _bundle_parts(path: Path) -> Iterator[Part]:
    bundle = Bundle.load(path)
    for step in bundle.program.instructions:
        yield f"instruction `{step.name}`", step.op
        for role, values in step.constants.items():
            yield f"tensor `{step.name}.{role}`", np.asarray(values)
        yield f"attributes of `{step.name}`", dict(step.attributes)
    for name, tensor in bundle.program.tensors.items():
        yield (
            f"tensor `{name}`",
            f"{tensor.dtype} {tensor.scale} {tensor.zero_point} {tensor.shape}",
        )
    yield from _leaves("provenance", dict(bundle.provenance))
    yield from _leaves("settings", dict(bundle.settings))


def _tflite_parts(path: Path) -> Iterator[Part]:
    network = read_network(model_bytes(path))
    tensors: dict[TFLiteTensor, None] = {}
    for operator in network.operators:
        tensors |= dict.fromkeys(input_ for input_ in operator.inputs if input_ is not None)
        tensors |= dict.fromkeys(operator.outputs)
        yield f"operator of `{operator.output.name}`", operator.type
    for tensor in tensors:
        yield f"tensor `{tensor.name}`", f"{tensor.dtype} {tensor.shape}"
        if tensor.values is not None:
            yield f"tensor `{tensor.name}`", tensor.values
        if tensor.grid is not None:
            yield f"scale of `{tensor.name}`", tensor.grid.scale
            yield f"zero point of `{tensor.name}`", tensor.grid.zero_point


def _array_parts(path: Path) -> Iterator[Part]:
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            yield f"tensor `{name}`", arrays[name]


def _document_parts(path: Path) -> Iterator[Part]:
    refuse_long(path)
    yield from _leaves("", json.loads(path.read_bytes()))


def _leaves(name: str, value: Json) -> Iterator[Part]:
    items: Iterable[tuple[Any, Json]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        yield f"`{name}`", value
    for key, inner in items:
        yield from _leaves(f"{name}.{key}" if name else str(key), inner)


PARTS: Mapping[str, Callable[[Path], Iterator[Part]]] = {
    ".onnx": _graph_parts,
    ".hybrid": _bundle_parts,
    ".tflite": _tflite_parts,
    ".npz": _array_parts,
    ".json": _document_parts,
}
