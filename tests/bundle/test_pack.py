"""Several bundles in one file: whole, in order, and never packed twice."""

import io
import zipfile

import numpy as np
import pytest

from npumake.bundle.archive import Bundle
from npumake.bundle.pack import bundles, chosen, pack, single, unpack
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.errors import GraphError


def bundle(value: int) -> bytes:
    grid = Tensor((2,), "int8", 1.0)
    step = Instruction("constant", "c", (), ("y",), {"values": np.full(2, value, np.int8)})
    return Bundle("any", Program((), ("y",), {"y": grid}, (step,)), {}).to_bytes()


MODELS = {"b": bundle(1), "a": bundle(2)}


def test_what_is_packed_is_unpacked_in_order():
    found = unpack(pack(MODELS), "both")
    assert {name: one.to_bytes() for name, one in found.items()} == MODELS
    assert list(found) == ["b", "a"]


def test_a_packed_model_is_not_packed_again():
    with pytest.raises(GraphError, match="both is a packed model, it can not be packed again!"):
        pack({"both": pack(MODELS), **MODELS})


def test_what_is_no_bundle_is_not_packed():
    with pytest.raises(GraphError, match="not a bundle"):
        pack({"a": b"hello"})


def test_one_of_several_has_to_be_named(tmp_path):
    (path := tmp_path / "both.hybrid").write_bytes(pack(MODELS))
    assert chosen(path, "a").to_bytes() == MODELS["a"]
    for name in (None, "c"):
        with pytest.raises(GraphError) as caught:
            chosen(path, name)
        assert caught.value.hint == "known: a, b"
    with pytest.raises(GraphError, match="pack model is not supported"):
        single(path)
    with pytest.raises(GraphError, match="a packed model: choose one"):
        Bundle.load(path)


def test_a_bundle_is_the_one_model_of_its_file(tmp_path):
    (path := tmp_path / "a.hybrid").write_bytes(MODELS["a"])
    assert list(bundles(path)) == ["a"]
    assert single(path).to_bytes() == MODELS["a"]


def test_every_changed_byte_is_refused_or_changes_nothing():
    data = pack(MODELS)
    for at in range(0, len(data), 7):
        broken = bytearray(data)
        broken[at] ^= 4
        try:
            found = unpack(bytes(broken), "both")
        except GraphError:
            continue
        assert {name: one.to_bytes() for name, one in found.items()} == MODELS


@pytest.mark.parametrize("name", ["../a", "a/b", "a\\b", ""])
def test_a_name_that_is_a_path_is_refused(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        document = f'{{"format":"npumake-pack","models":["{name}"],"sha256":{{}},"version":1}}'
        archive.writestr("pack.json", document.replace("\\", "\\\\"))
    with pytest.raises(GraphError, match="not a packed model"):
        unpack(file.getvalue(), "both")
