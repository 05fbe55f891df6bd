"""Metadata is read from a file alone, whichever carries it."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from detection.heads import document, head, props
from npumake.detection.carriers import labels_in, members, metadata_in
from npumake.detection.metadata import read_metadata
from npumake.errors import GraphError, ProjectError


def appended(path: Path, **written: bytes) -> Path:
    """A binary that a loader reads from its start, and a ZIP behind it."""
    path.write_bytes(b"TFL3" * 64)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in written.items():
            archive.writestr(name.replace("_", "."), data)
    return path


def test_what_is_appended_to_a_binary_is_found(tmp_path):
    metadata = read_metadata(props(), "m")
    written = {
        name.replace(".", "_"): data for name, data in members(metadata, ("a", "b c")).items()
    }
    path = appended(tmp_path / "m.tflite", **written)
    assert metadata_in(path) == metadata
    assert labels_in(path) == ("a", "b c")


def test_a_model_carries_its_own(tmp_path):
    (tmp_path / "m.onnx").write_bytes(head(edgefirst=props()))
    found = metadata_in(tmp_path / "m.onnx")
    assert found is not None
    assert found.document == document()


def test_a_file_without_a_zip_carries_nothing_and_is_no_error(tmp_path):
    (tmp_path / "m.dvm").write_bytes(b"DVM")
    assert metadata_in(tmp_path / "m.dvm") is None
    assert labels_in(tmp_path / "m.dvm") == ()
    assert metadata_in(appended(tmp_path / "n.dvm", other=b"x")) is None


def test_a_label_is_one_line_whatever_it_holds(tmp_path):
    made = members(read_metadata(props(), "m"), ("a\nb", " c "))
    assert made["labels.txt"] == b"a b\nc\n"


def test_a_blank_label_keeps_its_line(tmp_path):
    data = members(None, ("a", " ", "c"))["labels.txt"]
    assert labels_in(appended(tmp_path / "m.dvm", labels_txt=data)) == ("a", "1", "c")


def test_a_classifier_carries_its_class_names_alone():
    assert members(None, ("a",)) == {"labels.txt": b"a\n"}
    assert members(None, ()) == {}


@pytest.mark.parametrize(
    ("notes", "names"),
    [
        ({"names": "{0: 'a', 1: 'b'}"}, ("a", "b")),
        ({"labels": '["c"]', "names": "['a']"}, ("c",)),
        ({"labels": "a, b"}, ()),
        ({"labels": "{", "names": "['a']"}, ("a",)),
        ({"names": "7"}, ()),
        ({}, ()),
    ],
)
def test_notes_of_a_model_name_classes_or_nothing(tmp_path, notes, names):
    (tmp_path / "m.onnx").write_bytes(head(**notes))
    assert labels_in(tmp_path / "m.onnx") == names


def test_unreadable_labels_beside_metadata_are_an_error(tmp_path):
    (tmp_path / "m.onnx").write_bytes(head(edgefirst=props(dataset={"classes": []}), labels="a, b"))
    with pytest.raises(ProjectError):
        labels_in(tmp_path / "m.onnx")


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b"[]", b" " * ((1 << 24) + 1)])
def test_what_is_no_metadata_is_one_error(tmp_path, data):
    path = appended(tmp_path / "m.dvm", edgefirst_json=data)
    with pytest.raises(ProjectError) as caught:
        metadata_in(path)
    assert str(caught.value.where).startswith("edgefirst.json in m.dvm")


def test_every_damaged_byte_is_an_error_or_harmless(tmp_path):
    whole = appended(tmp_path / "m.dvm", edgefirst_json=props().encode()).read_bytes()
    for index in range(256, len(whole), 3):
        path = tmp_path / "d.dvm"
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 0x5A]) + whole[index + 1 :])
        with suppress(ProjectError):
            found = metadata_in(path)
            assert found is None or found.document == document()


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(GraphError, match="no such file"):
        metadata_in(tmp_path / "m.hybrid")
