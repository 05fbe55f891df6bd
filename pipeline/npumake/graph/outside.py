"""Weights of an ONNX model that lie in files beside it ("external data").

A tensor names such a file by a path from the model's folder, and the bytes it takes of it. That
path is never opened: it is looked up among the files that were named together with the model, so
that a model can read nothing its project does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import PurePosixPath, PureWindowsPath
from typing import Protocol

import google.protobuf.message
import onnx
import onnx_ir as ir

from npumake.errors import GraphError
from npumake.graph.proto import tensors

MAX_BYTES = (1 << 31) - 1  # of a protobuf message, which every artifact of a graph is


class Beside(Protocol):
    """A file that came with the model; its name is a path without root."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def part(self, offset: int, length: int) -> bytes: ...


def files_beside(data: bytes) -> tuple[str, ...]:
    """The files an ONNX model names, as paths from its folder, each once; none for a file that is
    no model. Raises GraphError for one that lies outside this folder."""
    try:
        proto = onnx.load_from_string(data)
    except (google.protobuf.message.DecodeError, ValueError):
        return ()
    return tuple(sorted({_location(tensor) for tensor in _outside(proto)}))


def bring_inside(proto: onnx.ModelProto, beside: Sequence[Beside]) -> None:
    """Put what lies in other files into the model, in place. Raises GraphError for a file that was
    not named, and bytes it does not have."""
    room = MAX_BYTES
    for tensor in _outside(proto):
        file = _file(tensor, beside)
        offset, length = _span(tensor, file)
        room -= length
        if room < 0:
            raise GraphError(f"the weights are more than the {MAX_BYTES >> 30} GiB of one file")
        tensor.raw_data = file.part(offset, length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.ClearField("external_data")


def _outside(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    for tensor in tensors(proto):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            yield tensor


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _location(tensor: onnx.TensorProto) -> str:
    """Where the weight lies, normalised. Raises GraphError for what is no path from a folder."""
    location = _entries(tensor).get("location", "")
    path = PurePosixPath(location)
    if (
        not path.name
        or ".." in path.parts
        or PureWindowsPath(location).drive
        or PureWindowsPath(location).root
        or "\\" in location
        or "\0" in location
    ):
        what = f"the weight `{tensor.name}` lies outside the folder of the model: {location!r}"
        raise GraphError(what, hint="save the model with its weights beside it")
    return str(path)


def _file(tensor: onnx.TensorProto, beside: Sequence[Beside]) -> Beside:
    """The file whose name is what the tensor says, or the longest end of it."""
    location = _location(tensor)
    named = [file for file in beside if f"/{location}".endswith(f"/{file.name}")]
    if not named:
        raise GraphError(
            f"the weight `{tensor.name}` lies in another file, `{location}`",
            hint=f"name it in the project, under `model:`:  weights: {location}",
        )
    return max(named, key=lambda file: len(file.name))


def _span(tensor: onnx.TensorProto, file: Beside) -> tuple[int, int]:
    """(offset, length) in bytes. Raises GraphError where the file or the shape says otherwise."""
    entries = _entries(tensor)
    bits = prod(tensor.dims) * ir.DataType(tensor.data_type).bitwidth
    length = -(-bits // 8)
    offset = int(entries.get("offset") or 0)
    declared = int(entries.get("length") or length)
    if declared != length or min(tensor.dims, default=0) < 0:
        what = f"the weight `{tensor.name}` of shape {list(tensor.dims)} takes {length} bytes"
        raise GraphError(f"{what}, not {declared}")
    if offset < 0 or offset + length > file.size:
        raise GraphError(
            f"the weight `{tensor.name}` is bytes {offset} to {offset + length} of "
            f"`{file.name}`, which has {file.size}"
        )
    return offset, length
