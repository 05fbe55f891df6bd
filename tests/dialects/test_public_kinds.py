"""Files as people publish them, each of its own kind, planned with a stand-in for the model.

`public_kinds/TOOL/NAME.yaml` was written here. Its first line may be a comment of what is told:
`# told: beginning of a note; of another`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from npumake.dialects.table import DIALECTS
from npumake.digest import Json
from npumake.make.plan import planned
from npumake.passes import optimized
from npumake.project.files import SourceFile
from npumake.project.reader import Project, read_project
from npumake.quant.precision.form import in_form
from npumake.quant.precision.precision_plan import plan_precision
from npumake.stages.original_float import original_float
from npumake.stages.stage import every_stage
from npumake.targets.reader import read_target
from stand_ins import named_nodes, stand_in

KINDS = Path(__file__).parent / "public_kinds"
FILES = sorted(KINDS.glob("*/*.yaml"))
MISSING = re.compile("the rule for `(.+)` has no effect")
SYNAP = {"images": {"shape": [1, 3, 64, 64]}}


def expected_notes(file: Path) -> list[str]:
    first = file.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# told: ").split("; ") if first.startswith("# told: ") else []


def laid_out(file: Path, folder: Path) -> Path:
    """The file in a project of its own, with its model and its quant_config beside it."""
    tool = file.parent.name
    project = folder / "project"
    project.mkdir()
    (project / "vendor.yaml").write_bytes(file.read_bytes())
    (project / "quant.json").write_text('{"model_config": {"all_node_type": "int16"}}')
    words = f"dialect: {tool}\nconfig: vendor.yaml\n"
    if tool == "synap":
        words += "model: {path: net.onnx}\ntargets: [sl1680]\n"
        (project / "net.onnx").write_bytes(stand_in(SYNAP))
    else:
        dialect = DIALECTS[tool]()
        native = dialect.translate(dialect.read(project / "vendor.yaml").document, "", {}).data
        model = (project / native["model"]["path"]).resolve()
        model.parent.mkdir(parents=True, exist_ok=True)
        model.write_bytes(_model(native, expected_notes(file)))
    (project / "project.yaml").write_text(words)
    return project


def _model(native: Json, notes: list[str]) -> bytes:
    absent = {match[1] for note in notes if (match := MISSING.match(note))}
    names = [name for name in named_nodes(native) if name not in absent]
    removed = set(native.get("compile", {}).get("remove_nodes", ()))
    return stand_in(native["inputs"], names, [n for n in names if removed & {n, f"{n}_output_0"}])


def notes_of(project: Project) -> Iterator[str]:
    """Of reading the files, and of planning every target's types."""
    yield from (note.what for note in project.notes)
    model = project.directory / str(project.sections.model.path)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    sources = {"model.path": (SourceFile(model.name, str(model), digest),)}
    graph = optimized(original_float(project.sections.model, project.sections.inputs, sources))
    for name, reading in project.targets.items():
        target = read_target(name)
        plan = plan_precision(in_form(graph, target), reading.sections.quantization, target)
        assert plan.unit, "nothing runs on the unit"
        yield from plan.notes


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_file_of_a_public_kind_is_planned_and_tells_what_it_leaves_out(file, tmp_path):
    project = read_project(laid_out(file, tmp_path), DIALECTS)
    assert planned(project, every_stage(), read_target).nodes
    notes = list(notes_of(project))
    for beginning in expected_notes(file):
        assert any(note.startswith(beginning) for note in notes), (beginning, notes)
