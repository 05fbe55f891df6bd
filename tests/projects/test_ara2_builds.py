"""The form of the Ara2 Converter is built as it is, from metadata and snapshot to the bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from data.snapshots import pictures, write
from detection.heads import SIDE, head, hint, props
from workspaces import REPO, Workspace

from pipeline.detection.notes import metadata_of
from pipeline.graph import Graph

pytestmark = pytest.mark.slow


def laid_out(root: Path, form: str, **metadata: object) -> Workspace:
    studio = root / "projects" / "digits" / "studio"
    studio.mkdir(parents=True)
    shutil.copy(REPO / "dodo.py", root)
    (studio / "m.onnx").write_bytes(head(edgefirst=props(**metadata)))
    params = {"input_shape": [SIDE, SIDE]}
    write(studio, params, {}, {"images": pictures(9, (3, SIDE, SIDE))}, "s.safetensors")
    (studio / "form.yaml").write_text(form)
    (studio.parent / "project.yaml").write_text("dialect: ara2\nconfig: studio/form.yaml\n")
    return Workspace(root)


FORM = "model: m.onnx\nint16_mode: int8\ncalibration: s.safetensors\n"


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
    assert "the metadata has none: the outputs stay" in workspace.doit().stdout
