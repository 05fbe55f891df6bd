"""Caffe files for tests: weights written byte by byte, nets in text, what a net computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npumake.engine.ort import OrtSession
from npumake.frontends import read_model
from npumake.graph import Graph

Arrays = Sequence[np.ndarray]


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def held(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def blob(array: np.ndarray, legacy: bool = False) -> bytes:
    """A BlobProto: of today with a shape, of old with num, channels, height and width."""
    data = held(5, np.asarray(array, "<f4").tobytes())
    if not legacy:
        return data + held(7, held(1, b"".join(map(varint, np.shape(array)))))
    four = (1,) * (4 - np.ndim(array)) + np.shape(array)
    return b"".join(varint(n << 3) + varint(size) for n, size in enumerate(four, 1)) + data


def caffemodel(layers: Mapping[str, Arrays], form: str = "current") -> bytes:
    """A .caffemodel in one of the three forms, by Caffe's field numbers."""
    return b"".join(_layer(name.encode(), arrays, form) for name, arrays in layers.items())


def _layer(name: bytes, arrays: Arrays, form: str) -> bytes:
    if form == "current":
        return held(100, held(1, name) + b"".join(held(7, blob(a)) for a in arrays))
    blobs = [blob(a, legacy=True) for a in arrays]
    if form == "V1":
        return held(2, held(4, name) + b"".join(held(6, b) for b in blobs))
    return held(2, held(1, held(1, name) + b"".join(held(50, b) for b in blobs)))


@dataclass(frozen=True)
class Beside:
    """A file that came with a model."""

    name: str
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def part(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


def read(text: str, weights: bytes) -> Graph:
    return read_model(text.encode(), "net.prototxt", [Beside("net.caffemodel", weights)])


def inputs(*shapes: Sequence[int]) -> str:
    """An Input layer for each shape: x0, x1…"""
    return "".join(
        f'layer {{ name: "x{i}" type: "Input" top: "x{i}" input_param {{ shape {{ '
        + " ".join(f"dim: {dim}" for dim in shape)
        + " } } }\n"
        for i, shape in enumerate(shapes)
    )


def run(graph: Graph, feeds: Iterable[np.ndarray]) -> list[np.ndarray]:
    names = [str(value.name) for value in graph.inputs]
    return OrtSession(graph.to_bytes()).run(None, dict(zip(names, feeds, strict=True)))
