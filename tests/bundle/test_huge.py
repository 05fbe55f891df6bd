"""A file of bundles that is larger than one may be, a hole on the disk, is refused unread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import certificates
from npumake.bundle import pack as packs
from npumake.bundle.archive import Bundle
from npumake.bundle.opening import opened
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.bundle.secure import Keys, Signer, secured
from npumake.errors import GraphError

HUGE = 6 << 30
STEP = Instruction("constant", "c", (), ("y",), {"values": np.array([3, -5, 9], np.int8)})
PROGRAM = Program((), ("y",), {"y": Tensor((3,), "int8", 1.0)}, (STEP,))
BUNDLE = Bundle("any", PROGRAM, {}).to_bytes()


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    certificates.written(tmp_path)
    return Keys.read(tmp_path / "vendor_certificate.pem")


@pytest.fixture
def signed(keys: Keys, tmp_path: Path) -> bytes:
    files = (tmp_path / "model_certificate.pem", tmp_path / "signature_key.pem")
    return secured(BUNDLE, "m", Signer.read(*files), keys)


def hole_before(data: bytes, path: Path) -> Path:
    """A ZIP is read from its end, whatever lies before it."""
    with path.open("wb") as file:
        file.seek(HUGE)
        file.write(data)
    return path


def test_a_pack(tmp_path: Path) -> None:
    path = hole_before(packs.pack({"a": BUNDLE}), tmp_path / "m.hybrid")
    with pytest.raises(GraphError, match=r"a file of 6,442,45\d,\d+ bytes; it may have 4,294,"):
        opened(path)


def test_a_secure_model(keys: Keys, signed: bytes, tmp_path: Path) -> None:
    path = hole_before(signed, tmp_path / "m.hybrid")
    with pytest.raises(GraphError, match=r"a file of 6,442,45\d,\d+ bytes; it may have 2,148,"):
        opened(path, keys=keys)


def test_a_secure_model_that_is_not_there(keys: Keys, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no such file"):
        opened(tmp_path / "m.hybrid", keys=keys)


def test_no_pack_is_made_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(packs.pack({"a": BUNDLE}))
    monkeypatch.setattr(packs, "MAX_ZIP_BYTES", size - 1)
    with pytest.raises(GraphError, match=f"a pack of {size:,} bytes; it may have {size - 1:,}"):
        packs.pack({"a": BUNDLE})
