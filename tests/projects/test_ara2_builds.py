"""The form of the Ara2 Converter is built as it is, from metadata and snapshot to the bundle."""

from __future__ import annotations

import json
import zipfile
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from data.snapshots import pictures, write
from detection.heads import (
    BOXES,
    CLASSES,
    COEFFICIENTS,
    SIDE,
    document,
    head,
    hint,
    props,
)
from npumake.bundle.archive import Bundle
from npumake.detection.carriers import labels_in, metadata_in
from npumake.detection.decode import Rules, decode
from npumake.detection.notes import metadata_of
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph
from npumake.runtime import Session
from workspaces import Workspace, lay_out_none

pytestmark = pytest.mark.slow


def laid_out(root: Path, form: str, **metadata: object) -> Workspace:
    workspace = lay_out_none(root)
    studio = workspace.project / "studio"
    studio.mkdir(parents=True)
    (studio / "m.onnx").write_bytes(head(edgefirst=props(**metadata)))
    params = {"input_shape": [SIDE, SIDE]}
    write(studio, params, {}, {"images": pictures(9, (3, SIDE, SIDE))}, "s.safetensors")
    (studio / "form.yaml").write_text(form)
    (studio.parent / "project.yaml").write_text("dialect: ara2\nconfig: studio/form.yaml\n")
    return workspace


FORM = "model: m.onnx\nint16_mode: int8\ncalibration: s.safetensors\n"
COMPILED = "projects/digits/out/model.ara240.hybrid"


@pytest.fixture(scope="module")
def smart(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """What the form makes with int16_smart."""
    root = tmp_path_factory.mktemp("smart")
    form = FORM.replace("int8", "int16_smart") + "task: bt-449c\n"
    workspace = laid_out(root, form, nms="class_aware")
    workspace.doit()
    return workspace


def codes_of(bundle: Path, feed: np.ndarray) -> dict[str, np.ndarray]:
    """What the chip gives: integers on the grids of its outputs."""
    program = Bundle.load(bundle).program
    by_output = {
        step.outputs[0]: step.inputs[0] for step in program.instructions if step.op == "dequantize"
    }
    codes = [by_output[name] for name in program.outputs]
    made = ReferenceSession(program).run(codes, {"images": feed})
    return dict(zip(program.outputs, made, strict=True))


def test_any_zip_reader_finds_what_the_converter_says(smart: Workspace) -> None:
    with zipfile.ZipFile(smart.root / COMPILED) as archive:
        found = json.loads(archive.read("edgefirst.json"))
        assert archive.read("labels.txt") == b"disc\nbox\nstar\n"
    assert "split_hints" not in found
    assert found["ara2"] == {
        "version": "npumake-hybrid 3",
        "timestamp": "1980-01-01T00:00:00Z",
        "task": "bt-449c",
        "qmode": 9,
        "target": "ara-2",
        "int16_mode": "smart",
        "splits_applied": ["quantization_split"],
        "calibration": "s.safetensors",
        "calibration_geometry": {"resize": "letterbox", "input_shape": [SIDE, SIDE]},
    }
    assert found["compilation"].items() >= {"target": "ara-2", "format": "hybrid"}.items()
    assert found["input"]["dshape"][2:] == [{"height": SIDE}, {"width": SIDE}]
    added = {key: found[key] for key in ("outputs", "ara2", "compilation", "input")}
    assert found | {"split_hints": [hint()]} == document(nms="class_aware") | added


def test_sizes_are_of_tensors_at_multiples_of_256_bytes(smart: Workspace) -> None:
    """As the published artifacts count them."""
    with zipfile.ZipFile(smart.root / COMPILED) as archive:
        found = json.loads(archive.read("edgefirst.json"))["compilation"]["hw_metadata"]
    sizes = [2 * BOXES * 2] * 2 + [CLASSES * BOXES, COEFFICIENTS * BOXES * 2, COEFFICIENTS * 64]
    assert found == {
        "input_size": 3 * SIDE * SIDE,
        "output_size": sum(-(-size // 256) * 256 for size in sizes),
    }


def test_boxes_and_mask_coefficients_have_16_bits_scores_and_protos_8(smart: Workspace) -> None:
    metadata = metadata_in(smart.root / COMPILED)
    assert metadata is not None
    tensors = [tensor for output in metadata.outputs for tensor in output.tensors]
    grids = [tensor.quantization for tensor in tensors]
    assert [tensor.dtype for tensor in tensors] == ["int16", "int16", "uint8", "int16", "int8"]
    assert [grid.dtype for grid in grids if grid] == [tensor.dtype for tensor in tensors]
    assert all(grid.zero_point == (0,) for grid in grids[:4] if grid)
    assert grids[2] is not None
    assert grids[2].scale == (1 / 256,)
    assert [tensor.shape[2:] for tensor in tensors[:4]] == [(BOXES, 1)] * 4


def test_codes_of_a_compiled_file_decode_by_the_file_alone(smart: Workspace) -> None:
    """To what its real numbers decode to, exactly."""
    bundle = smart.root / COMPILED
    metadata = metadata_in(bundle)
    assert metadata is not None
    assert labels_in(bundle) == metadata.classes
    feed = pictures(1, (3, SIDE, SIDE)).astype(np.float32) - 128
    codes, session = codes_of(bundle, feed), Session(bundle)
    assert {array.dtype.kind for array in codes.values()} == {"i", "u"}
    real = dict(zip(session.output_names, session.run(None, {"images": feed}), strict=True))
    rules = Rules(0.1, 0.7, 0)
    found, expected = (
        decode(arrays, metadata.outputs, (SIDE, SIDE), rules) for arrays in (codes, real)
    )
    assert len(found.boxes) > 0
    for a, b in zip(astuple(found), astuple(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("strides", [False, True])
def test_a_form_is_built_and_its_outputs_described(tmp_path: Path, strides: bool) -> None:
    workspace = laid_out(tmp_path, FORM, split_hints=[hint(strides=strides)])
    workspace.doit()
    assert (workspace.project / "out" / "model.ara240.hybrid").is_file()
    quantized = Graph.load(workspace.project / "out" / "quantized.ara240.onnx")
    metadata = metadata_of(quantized)
    assert metadata is not None
    tensors = [tensor.name for output in metadata.outputs for tensor in output.tensors]
    assert tensors == [str(value.name) for value in quantized.outputs]
    assert len(tensors) == (10 if strides else 5)


def test_what_the_metadata_lacks_is_said_while_it_is_built(tmp_path: Path) -> None:
    workspace = laid_out(tmp_path, FORM, split_hints=[])
    assert "the metadata has no split_hints: the outputs stay whole" in workspace.doit().stdout


def test_a_hand_over_is_the_form_its_snapshot_and_no_other_build(tmp_path: Path) -> None:
    workspace = laid_out(tmp_path, FORM + "task: bt-449c\n")
    given = ("projects/digits", "--target", "ara240", "--out", "projects/handed")
    workspace.npumake("handover", *given)
    out = workspace.root / "projects/handed"
    form = "model: model.onnx\nint16_mode: int8\ncalibration: s.safetensors\ntask: bt-449c\n"
    assert (out / "form.yaml").read_text() == form
    (out / "project.yaml").write_text("dialect: ara2\nconfig: form.yaml\n")
    workspace.npumake("build", "digits", "handed")
    one, other = contents(out / "out/model.ara240.hybrid"), contents(workspace.root / COMPILED)
    # They tell where their samples came from: one from the snapshot of the other.
    assert one.pop("provenance.json") != other.pop("provenance.json")
    assert one.pop("manifest.json") != other.pop("manifest.json")  # digests of both
    assert one == other


def contents(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_model_made_outside_studio_builds_with_a_warning_and_describes_its_outputs(
    tmp_path: Path,
) -> None:
    workspace = laid_out(tmp_path, FORM)
    (workspace.project / "studio" / "m.onnx").write_bytes(head())
    assert "the model holds no metadata: the outputs stay whole" in workspace.doit().stdout
    metadata = metadata_in(workspace.root / COMPILED)
    assert metadata is not None
    assert [output.type for output in metadata.outputs] == ["detection", "protos"]
    assert metadata.document["ara2"]["splits_applied"] == []
