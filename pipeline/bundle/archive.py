"""Bundle: a program in one file, and back.

A `.hybrid` is a ZIP that any reader opens: nothing compressed, every date 1980-01-01, so that the
same program is the same bytes on every machine.

    manifest.json    format, version, target, inputs and outputs, SHA-256 of the other members
    program.json     tensors and instructions; a constant is (offset, dtype, shape) in weights.bin
    weights.bin      the constants, each aligned to 64 bytes, equal ones stored once
    provenance.json  the quantized graph's digest, the target and the tools that made it
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pipeline import digest
from pipeline.bundle.program import Instruction, Program, Tensor
from pipeline.errors import GraphError

FORMAT = "npumake-hybrid"
VERSION = 1
ALIGNMENT = 64
MAX_BYTES = 4 << 30  # of a bundle in memory; also what a stranger's file may claim to unpack to
MEMBERS = ("manifest.json", "program.json", "weights.bin", "provenance.json")
DTYPES = frozenset({"int8", "uint8", "int16", "uint16", "int32", "int64", "float32"})


@dataclass(frozen=True)
class Bundle:
    """The compiled artifact: what runs, for which target, made from what."""

    target: str
    program: Program
    provenance: Mapping[str, digest.Json]

    suffix: ClassVar[str] = ".hybrid"

    def to_bytes(self) -> bytes:
        program, weights = _packed(self.program)
        members = {
            "program.json": digest.canonical(program),
            "weights.bin": weights,
            "provenance.json": digest.canonical(self.provenance),
        }
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "target": self.target,
            "inputs": _interface(self.program, self.program.inputs),
            "outputs": _interface(self.program, self.program.outputs),
            "sha256": {name: digest.of_bytes(data) for name, data in members.items()},
        }
        return _zipped({"manifest.json": digest.canonical(manifest), **members})

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "bundle") -> Bundle:
        """Raises GraphError for anything that is not exactly what `to_bytes` writes."""
        members = _members(data, name)
        try:
            manifest = json.loads(members["manifest.json"])
            if (manifest["format"], manifest["version"]) != (FORMAT, VERSION):
                raise GraphError(f"a bundle of another version: {manifest['version']}", name)
            for member, expected in manifest["sha256"].items():
                if digest.of_bytes(members[member]) != expected:
                    raise GraphError(f"the bundle is damaged: {member} was changed", name)
            program = _unpacked(json.loads(members["program.json"]), members["weights.bin"])
            provenance = json.loads(members["provenance.json"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GraphError(f"the bundle is damaged: {error!r}", name) from error
        return cls(str(manifest["target"]), program, provenance)

    def save(self, path: Path) -> None:
        path.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> Bundle:
        return cls.from_bytes(path.read_bytes(), path.name)


def _interface(program: Program, names: Iterable[str]) -> list[digest.Json]:
    return [{"name": name, **digest.plain(program.tensors[name])} for name in names]


# -- program and weights -------------------------------------------------------------------


def _packed(program: Program) -> tuple[digest.Json, bytes]:
    """The program as JSON and the bytes its constants point into."""
    weights, places = bytearray(), dict[tuple[str, bytes], int]()

    def place(array: np.ndarray) -> digest.Json:
        if array.dtype.name not in DTYPES:
            raise TypeError(f"a bundle holds no {array.dtype}")
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        key = (array.dtype.name, data)
        if key not in places:
            weights.extend(bytes(-len(weights) % ALIGNMENT))
            places[key] = len(weights)
            weights.extend(data)
        return [places[key], array.dtype.name, list(array.shape)]

    instructions = [
        {
            "op": step.op,
            "name": step.name,
            "inputs": step.inputs,
            "outputs": step.outputs,
            "constants": {role: place(step.constants[role]) for role in sorted(step.constants)},
            "attributes": step.attributes,
        }
        for step in program.instructions
    ]
    document = {
        "inputs": program.inputs,
        "outputs": program.outputs,
        "tensors": {name: digest.plain(tensor) for name, tensor in program.tensors.items()},
        "instructions": instructions,
    }
    return document, bytes(weights)


def _unpacked(document: Any, weights: bytes) -> Program:
    def constant(offset: int, dtype: str, shape: list[int]) -> np.ndarray:
        if dtype not in DTYPES or offset < 0 or any(dim < 0 for dim in shape):
            raise ValueError(f"a constant of {dtype}{shape} at {offset}")
        little = np.dtype(dtype).newbyteorder("<")
        # Raises ValueError where the constant would end beyond the bytes there are.
        flat = np.frombuffer(weights, little, math.prod(shape), offset)
        return flat.astype(dtype, copy=False).reshape(shape)

    tensors = {
        name: Tensor(tuple(t["shape"]), t["dtype"], t["scale"], t["zero_point"])
        for name, t in document["tensors"].items()
    }
    instructions = tuple(
        Instruction(
            step["op"],
            step["name"],
            tuple(step["inputs"]),
            tuple(step["outputs"]),
            {role: constant(*place) for role, place in step["constants"].items()},
            step["attributes"],
        )
        for step in document["instructions"]
    )
    return Program(tuple(document["inputs"]), tuple(document["outputs"]), tensors, instructions)


# -- the file ------------------------------------------------------------------------------


def _zipped(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name)  # dated 1980-01-01
            entry.create_system = 3  # the same on every system
            archive.writestr(entry, data)
    return file.getvalue()


def _members(data: bytes, name: str) -> dict[str, bytes]:
    """Only our members, only stored, and no more than the file itself can hold."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            if not stored or sum(entry.file_size for entry in entries) > min(MAX_BYTES, len(data)):
                raise GraphError("not a bundle of ours: its members are compressed", name)
            return {member: archive.read(member) for member in MEMBERS}
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise GraphError(f"not a bundle, or damaged: {error}", name) from error
