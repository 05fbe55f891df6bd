"""Bundle: a program in one file, and back.

A `.hybrid` is a plain ZIP: nothing is compressed and every date is 1980-01-01. The same program
gives the same bytes on every machine.

    manifest.json    format, version, target, batch, the section `compile`, security policies other
                     than the default, inputs, outputs, SHA-256 of the other members
    program.json     tensors and instructions; a constant is (offset, dtype, shape) in weights.bin;
                     the memory plan (npumake.bundle.memory)
    weights.bin      the constants, each aligned to 64 bytes, equal ones stored once
    cpu/<n>.onnx     CPU subgraphs, optional: `onnx` instructions name them
    code/<file>      the Python of custom operators, optional
    edgefirst.json   a detector's metadata and
    labels.txt       its classes, optional, for decoders; this room does not read them
    provenance.json  the quantized graph's digest, the target and the versions of the tools
"""

from __future__ import annotations

import io
import json
import mmap
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from npumake import digest
from npumake.bundle.packing import CPU, Packed, packed, unpacked
from npumake.bundle.program import Program
from npumake.digest import Json
from npumake.errors import GraphError
from npumake.lifetime.temporaries import owned, temporary_name

FORMAT = "npumake-hybrid"
VERSION = 3
MAX_BATCH = 128
WEIGHTS = "weights.bin"
MEMBERS = ("manifest.json", "program.json", WEIGHTS, "provenance.json")
HEADER = struct.Struct(
    "<4s5H3I2H"
)  # of a ZIP member: signature, …, lengths of name and extra field
CODE = "code/"  # the folder of members that are Python
PACK = "pack.json"  # marks a file with several bundles
SEAL = "seal.json"  # marks a file with one signed bundle
# The permitted memories of a tensor on a chip with secure memory; the default comes first.
INPUT_POLICIES = ("any", "secure", "non-secure")
OUTPUT_POLICIES = ("secure-if-input-secure", "any")
# Keys of the provenance: how the inputs are fed, and how the ranges were calibrated.
INPUTS, CALIBRATION = "inputs", "calibration"
BESIDE = ("edgefirst.json", "labels.txt")  # members for other readers

DDR = "ddr"  # among the settings: GB/s of the board, from the section `cost`
# Exceptions that zipfile, json and `unpacked` raise for damaged files.
DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    OverflowError,
    struct.error,
    RuntimeError,  # nested too deep, encrypted, of a later ZIP version
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class Bundle:
    """The compiled artifact: the program, its target and its provenance.

    `code` holds the Python of custom operators by file name. It is read here, never run.
    """

    target: str
    program: Program
    provenance: Mapping[str, Json]
    batch: int = 1  # images per run; the program takes one
    code: Mapping[str, bytes] = field(default_factory=dict)
    beside: Mapping[str, bytes] = field(default_factory=dict)  # keys are names of BESIDE
    settings: Mapping[str, Json] = field(default_factory=dict)  # section `compile` without prefix
    # policies other than the default, by "inputs" or "outputs" and name
    security: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    suffix: ClassVar[str] = ".hybrid"

    @property
    def policies(self) -> dict[str, dict[str, str]]:
        """The security policy of every input and output, by role and name."""
        usual = {
            "inputs": dict.fromkeys(self.program.inputs, INPUT_POLICIES[0]),
            "outputs": dict.fromkeys(self.program.outputs, OUTPUT_POLICIES[0]),
        }
        return {role: {**names, **self.security.get(role, {})} for role, names in usual.items()}

    def to_bytes(self) -> bytes:
        program, weights, models = packed(self.program)
        members = {
            "program.json": digest.canonical(program),
            WEIGHTS: weights,
            "provenance.json": digest.canonical(self.provenance),
            **models,
            **{f"{CODE}{name}": self.code[name] for name in sorted(self.code)},
            **{name: self.beside[name] for name in BESIDE if name in self.beside},
        }
        manifest = digest.canonical(_manifest(self, members))
        return zipped({"manifest.json": manifest, **members})

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "bundle") -> Bundle:
        """Raises GraphError for bytes that `to_bytes` did not write."""
        return cls._read(io.BytesIO(data), lambda: memoryview(data), name)

    @classmethod
    def _read(cls, file: BinaryIO, content: Callable[[], memoryview], name: str) -> Bundle:
        """The bundle in `file`; its constants are views of `content()`, the file's bytes."""
        try:
            members = _members(file, content())
            manifest = _document(members.pop("manifest.json"))
            if (manifest["format"], manifest["version"]) != (FORMAT, VERSION):
                message = f"a bundle of version {manifest['version']}; this npumake reads {VERSION}"
                raise GraphError(message, name, "build it again from its project")
            models = {name: data for name, data in members.items() if name.startswith(CPU)}
            written = Packed(_document(members["program.json"]), members[WEIGHTS], models)
            program = unpacked(written)
            target, batch = manifest["target"], _batch(manifest.get("batch", 1))
            code = {n.removeprefix(CODE): data for n, data in members.items() if n.startswith(CODE)}
            beside = {name: members[name] for name in BESIDE if name in members}
            provenance = _document(members["provenance.json"])
            settings = dict(manifest.get("compile", {}))
            security = _security(dict(manifest.get("security", {})), program)
            bundle = cls(target, program, provenance, batch, code, beside, settings, security)
            if manifest != _manifest(bundle, members):
                raise ValueError("the manifest does not describe the other members")
            return bundle
        except DAMAGE as error:
            raise GraphError(f"not a bundle, or damaged: {error}", name) from error

    def save(self, path: Path) -> None:
        """Replaces the file atomically; processes that map the old one keep it."""
        temporary = path.with_name(temporary_name(path.suffix))
        with owned(temporary):
            temporary.write_bytes(self.to_bytes())
            temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> Bundle:
        """As from_bytes, but maps the constants: processes that load the same file share its
        memory."""
        with path.open("rb") as file:

            def mapped() -> memoryview:
                try:
                    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                except OSError as error:
                    message = f"the file cannot be mapped into memory: {error.strerror}"
                    raise GraphError(message, path.name) from error

            return cls._read(file, mapped, path.name)


def whole(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file of bundles. Raises GraphError for no file, and for one of more than
    `max_bytes` before it is read."""
    if not path.is_file():
        raise GraphError("no such file", str(path))
    if (size := path.stat().st_size) > max_bytes:
        raise GraphError(f"a file of {size:,} bytes; it may have {max_bytes:,}", str(path))
    return path.read_bytes()


def _batch(value: Json) -> int:
    if type(value) is not int or not 1 <= value <= MAX_BATCH:
        raise ValueError(f"a batch of {value}")
    return value


def _security(entries: Json, program: Program) -> dict[str, dict[str, str]]:
    allowed = {
        "inputs": (program.inputs, INPUT_POLICIES),
        "outputs": (program.outputs, OUTPUT_POLICIES),
    }
    for role, (names, policies) in allowed.items():
        for name, policy in dict(entries.get(role, {})).items():
            if name not in names or policy not in policies:
                raise ValueError(f"`{name}` has no security policy {policy!r}")
    return entries


def _manifest(bundle: Bundle, members: Mapping[str, bytes]) -> dict[str, Json]:
    program = bundle.program
    return {
        "format": FORMAT,
        "version": VERSION,
        "target": str(bundle.target),
        **({"batch": bundle.batch} if bundle.batch > 1 else {}),
        **({"compile": bundle.settings} if bundle.settings else {}),
        **({"security": digest.plain(bundle.security)} if bundle.security else {}),
        "inputs": _interface(program, program.inputs),
        "outputs": _interface(program, program.outputs),
        "sha256": {name: digest.of_bytes(data) for name, data in members.items()},
    }


def _interface(program: Program, names: Iterable[str]) -> list[Json]:
    return [{"name": name, **digest.plain(program.tensors[name])} for name in names]


def _document(data: bytes) -> dict[str, Json]:
    """A JSON object in canonical form: no duplicate key, no NaN, no space."""
    document = json.loads(data)
    if not isinstance(document, dict) or digest.canonical(document) != data:
        raise ValueError("a document is not written as a bundle writes it")
    return document


# -- the file ------------------------------------------------------------------------------


def zipped(members: Mapping[str, bytes]) -> bytes:
    """An uncompressed, undated ZIP: the same members give the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name)  # dated 1980-01-01
            entry.create_system = 3  # the same on every system
            archive.writestr(entry, data)
    return file.getvalue()


def is_secure(file: BinaryIO) -> bool:
    """Whether a file holds a sealed bundle; the seal is not verified."""
    try:
        with zipfile.ZipFile(file) as archive:
            return SEAL in archive.namelist()
    except DAMAGE:
        return False


def _members(file: BinaryIO, data: memoryview) -> dict[str, Any]:
    """The members. Raises for unknown or compressed ones and for sizes beyond the file's."""
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        inside = sorted({name for name in names if name.startswith((CODE, CPU))})
        beside = [name for name in BESIDE if name in names]
        if PACK in names:
            raise GraphError("a packed model: choose one of its models", hint="-m NAME")
        if SEAL in names:
            raise GraphError("a secure model: it opens with its keys", hint="npumake show FILE")
        if sorted(names) != sorted([*MEMBERS, *inside, *beside]):
            raise ValueError("other members than a bundle has")
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("its members are compressed")
        if sum(entry.file_size for entry in entries) > len(data):
            raise ValueError("its members overlap")
        if any(not 0 <= entry.header_offset < len(data) for entry in entries):
            raise ValueError("a member is outside the file")
        if any(".." in name or "\\" in name or "//" in name for name in inside):
            raise ValueError("the name of a member leads elsewhere")
        contents: dict[str, Any] = {
            name: archive.read(name) for name in (*MEMBERS, *inside, *beside) if name != WEIGHTS
        }
        archive.open(WEIGHTS).close()  # refuses a header that contradicts the directory
        return contents | {WEIGHTS: _view(data, archive.getinfo(WEIGHTS))}


def _view(data: memoryview, entry: zipfile.ZipInfo) -> memoryview:
    """A view of a stored member's bytes, behind its header, name and extra field."""
    header = data[entry.header_offset :][: HEADER.size]
    *_, name, extra = HEADER.unpack(header)
    start = entry.header_offset + HEADER.size + name + extra
    content = data[start : start + entry.file_size]
    if zlib.crc32(content) != entry.CRC:
        raise ValueError(f"{entry.filename} is damaged")
    return content
