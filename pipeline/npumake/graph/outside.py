"""Weights of an ONNX model in files beside it ("external data").

A tensor names such a file by a path relative to the model's folder, and a span of its bytes. The
path is never opened. It is looked up among the files that the project lists, so a model cannot read
anything else.
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

MAX_BYTES = (1 << 31) - 1  # limit of a protobuf message, and so of every graph artifact


class Beside(Protocol):
    """A file that belongs to the model; its name is a relative path."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def part(self, offset: int, length: int) -> bytes: ...


def files_beside(data: bytes) -> tuple[str, ...]:
    """The files that an ONNX model refers to, as paths relative to its folder, each once. Empty for
    bytes other than a model. Raises GraphError for a path outside this folder."""
    try:
        proto = onnx.load_from_string(data)
    except (google.protobuf.message.DecodeError, ValueError):
        return ()
    return tuple(sorted({_location(tensor) for tensor in _outside(proto)}))


def bring_inside(proto: onnx.ModelProto, beside: Sequence[Beside]) -> None:
    """Moves external weights into the model, in place. Raises GraphError for a file that is not
    listed, and for a span beyond its end."""
    room = MAX_BYTES
    for tensor in _outside(proto):
        file, offset, length = span_of(tensor, beside)
        room -= length
        if room < 0:
            raise GraphError(f"the weights are more than the {MAX_BYTES >> 30} GiB of one file")
        tensor.raw_data = file.part(offset, length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.ClearField("external_data")


def span_of(tensor: onnx.TensorProto, beside: Sequence[Beside]) -> tuple[Beside, int, int]:
    """The file of an external weight, with its offset and length in bytes. Raises GraphError."""
    file = _file(tensor, beside)
    return (file, *_span(tensor, file))


def _outside(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    for tensor in tensors(proto):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            yield tensor


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _location(tensor: onnx.TensorProto) -> str:
    """The weight's normalized path. Raises GraphError unless it is inside the folder."""
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
        message = f"the weight `{tensor.name}` is outside the folder of the model: {location!r}"
        raise GraphError(message, hint="save the model with its weights beside it")
    return str(path)


def _file(tensor: onnx.TensorProto, beside: Sequence[Beside]) -> Beside:
    """The file with the tensor's path, or with the longest suffix of it."""
    location = _location(tensor)
    named = [file for file in beside if f"/{location}".endswith(f"/{file.name}")]
    if not named:
        raise GraphError(
            f"the weight `{tensor.name}` is in another file, `{location}`",
            hint=f"name it in the project, under `model:`:  weights: {location}",
        )
    return max(named, key=lambda file: len(file.name))


def _span(tensor: onnx.TensorProto, file: Beside) -> tuple[int, int]:
    """(offset, length) in bytes. Raises GraphError if file or shape contradict it."""
    entries = _entries(tensor)
    bits = prod(tensor.dims) * ir.DataType(tensor.data_type).bitwidth
    length = -(-bits // 8)
    offset = int(entries.get("offset") or 0)
    declared = int(entries.get("length") or length)
    if declared != length or min(tensor.dims, default=0) < 0:
        message = f"the weight `{tensor.name}` of shape {list(tensor.dims)} takes {length} bytes"
        raise GraphError(f"{message}, not {declared}")
    if offset < 0 or offset + length > file.size:
        raise GraphError(
            f"the weight `{tensor.name}` is bytes {offset} to {offset + length} of "
            f"`{file.name}`, which has {file.size}"
        )
    return offset, length
