"""Malformed bundles, packs and secure models: one clear error of every verb that opens them,
quickly, in little memory; nothing of theirs is run, and nothing is written beside them.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import certificates
from malformed.runner import Case, Server, check
from npumake.bundle.archive import Bundle, zipped
from npumake.bundle.pack import pack
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.bundle.secure import secured

GRID = Tensor((2,), "int8", 1.0)
STEP = Instruction("constant", "c", (), ("y",), {"values": np.array([3, -5], np.int8)})
CODE = {"op.py": b"open('was_run', 'w')\n"}
BUNDLE = Bundle("any", Program((), ("y",), {"y": GRID}, (STEP,)), {}, code=CODE).to_bytes()
PACK = pack({"a": BUNDLE})


@cache
def secure() -> bytes:
    return secured(BUNDLE, "m", certificates.signer(certificates.model()), certificates.keys())


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_members(data: bytes, **changed: bytes) -> bytes:
    return zipped(parts(data) | {name.replace("__", "."): x for name, x in changed.items()})


def with_document(data: bytes, member: str, **keys: object) -> bytes:
    members = parts(data)
    document = json.loads(members[member]) | keys
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    return zipped(members | {member: text})


def compressed(data: bytes, swollen: int = 0) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, member in parts(data).items():
            archive.writestr(name, member + bytes(swollen))
    return file.getvalue()


def linked(data: bytes) -> bytes:
    """A member that says of itself that it is a symbolic link to a secret."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, member in parts(data).items():
            archive.writestr(name, member)
        entry = zipfile.ZipInfo("code/x.py")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    return file.getvalue()


def directory_at(data: bytes, offset: int) -> bytes:
    """The end of the archive says that its directory begins at `offset`."""
    return data[:-6] + struct.pack("<I", offset) + data[-2:]


def sizes(data: bytes, size: int) -> bytes:
    """The directory says of its first member that it has `size` bytes."""
    at = data.index(b"PK\1\2")
    return data[: at + 20] + struct.pack("<II", size, size) + data[at + 28 :]


DEEP = b"[" * 200_000
DAMAGED = "not a bundle, or damaged"
FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", DAMAGED),
    "a pickle": (lambda: pickle.dumps(print), DAMAGED),
    "cut off": (lambda: BUNDLE[:-30], DAMAGED),
    "cut off at the start": (lambda: BUNDLE[30:], ""),
    "a directory that is elsewhere": (lambda: directory_at(BUNDLE, 1), DAMAGED),
    "a directory behind the end": (lambda: directory_at(BUNDLE, 0xFFFFFFF0), DAMAGED),
    "a member of 4 GB": (lambda: sizes(BUNDLE, 0xFFFFFFF0), DAMAGED),
    "members compressed": (lambda: compressed(BUNDLE), "its members are compressed"),
    "a zip bomb": (lambda: compressed(BUNDLE, 200_000_000), "its members are compressed"),
    "a member up the folders": (
        lambda: zipped({**parts(BUNDLE), "../../escaped": b"x"}),
        "other members than a bundle has",
    ),
    "an absolute member": (
        lambda: zipped({**parts(BUNDLE), "/tmp/escaped": b"x"}),
        "other members than a bundle has",
    ),
    "code up the folders": (
        lambda: zipped({**parts(BUNDLE), "code/../../escaped.py": b"x"}),
        "the name of a member leads elsewhere",
    ),
    "a link": (lambda: linked(BUNDLE), "the manifest does not describe"),
    "a program of brackets": (lambda: with_members(BUNDLE, program__json=DEEP), DAMAGED),
    "a program that is a pickle": (
        lambda: with_members(BUNDLE, program__json=pickle.dumps(print)),
        DAMAGED,
    ),
    "policies that are a list": (
        lambda: with_document(BUNDLE, "manifest.json", security=[1]),
        DAMAGED,
    ),
    "policies of nobody": (
        lambda: with_document(BUNDLE, "manifest.json", security={"inputs": {"x": "any"}}),
        "`x` has no security policy 'any'",
    ),
    "another policy": (
        lambda: with_document(BUNDLE, "manifest.json", security={"outputs": {"y": "none"}}),
        "`y` has no security policy 'none'",
    ),
    "a pack up the folders": (
        lambda: with_document(PACK, "pack.json", models=["../a"]),
        "not a packed model",
    ),
    "a pack of a bomb": (lambda: compressed(PACK, 200_000_000), "not a packed model"),
    "a pack of brackets": (lambda: with_members(PACK, pack__json=DEEP), "not a packed model"),
    "a secure model": (secure, "a secure model: it opens with its keys"),
}
SEALED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a bomb": (lambda: compressed(secure(), 200_000_000), "its members are compressed"),
    "a seal of brackets": (lambda: with_members(secure(), seal__json=DEEP), "not a secure model"),
    "another cipher": (
        lambda: with_document(secure(), "seal.json", cipher="none"),
        "an unknown cipher",
    ),
    "policies that are a list": (
        lambda: with_document(secure(), "seal.json", security=[1]),
        "not a secure model",
    ),
    "a later version": (
        lambda: with_document(secure(), "seal.json", version=2),
        "a secure model of another version: 2",
    ),
    "a pickle for a certificate": (
        lambda: with_members(secure(), signer__der=pickle.dumps(print)),
        "not a certificate that can be used",
    ),
    "a certificate of 1 MB": (
        lambda: with_members(secure(), signer__der=bytes(1 << 20)),
        "it has more than 16384 bytes",
    ),
    "a member more": (
        lambda: zipped({**parts(secure()), "../escaped": b""}),
        "other members than a secure model has",
    ),
    "no signature": (lambda: with_members(secure(), signature=b""), "changed since it was signed"),
    "a plain bundle": (lambda: BUNDLE, "not a secure model"),
}


def put(data: Callable[[], bytes]) -> Callable[[Path], object]:
    def damage(project: Path) -> None:
        (project / "m.hybrid").write_bytes(data())
        certificates.written(project)

    return damage


OPEN = (
    Case(name, put(data), command, 3, (words,))
    for name, (data, words) in FILES.items()
    for command in (("info", "m.hybrid"), ("bench", "m.hybrid", "--frame_count", "1"))
)
CHECKED = ("--vendor-certificate", "vendor_certificate.pem")
SHOW = (
    Case(name, put(data), ("show", "m.hybrid", *CHECKED), 3, (words,))
    for name, (data, words) in SEALED.items()
)


@pytest.mark.slow(cases=27)
@pytest.mark.parametrize("case", [*OPEN, *SHOW], ids=lambda case: f"{case.command[0]} {case.name}")
def test_a_malformed_bundle_is_one_error(case: Case, server: Server, tmp_path: Path) -> None:
    check(case, server, tmp_path / "w")


def test_the_code_a_bundle_brings_is_not_run_unasked(server: Server, tmp_path: Path) -> None:
    command = ("bench", "m.hybrid", "--frame_count", "1")
    check(Case("", put(lambda: BUNDLE), command, 3, ("contains Python",)), server, tmp_path / "w")
