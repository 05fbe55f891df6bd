"""The freshness truth table: what a change makes a build run, recall, or leave alone.

A row is a change, the nodes that run and the nodes that are recalled from the store; every other
node is current. A stage's name stands for its nodes on both targets; `p9:` before it names a
variant.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from workspaces import REPO, Workspace, made

BEHIND = "recipe calibrated quantized compiled compiled_check comparison"
ALL = f"original_float optimized_float samples statistics {BEHIND}"
P9 = f"p9:{BEHIND.replace(' ', ' p9:')}"
ARA240 = f"{BEHIND.replace(' ', '@ara240 ')}@ara240"

TABLE = f"""
change                        | runs                          | recalled
nothing                       | -                             | -
comment_in_yaml               | -                             | -
key_order_in_yaml             | -                             | -
section_in_a_file_of_its_own  | -                             | -
calibration_method            | {BEHIND}                      | -
calibration_method_and_back   | -                             | {BEHIND}
pixel_with_mtime_preserved    | samples statistics {BEHIND}   | -
sample_added                  | samples statistics {BEHIND}   | -
model_weights                 | {ALL}                         | -
target_added                  | {BEHIND.replace(" ", "@nash-e ")}@nash-e | -
target_removed                | -                             | -
variant_added                 | {P9}                          | -
variant_that_changes_nothing  | -                             | {P9}
variant_edited                | {P9}                          | -
variant_removed               | -                             | -
variant_of_a_shared_section   | {" ".join(f"p9:{stage}" for stage in ALL.split())} | -
target_override               | {ARA240}                      | -
target_override_and_back      | -                             | {ARA240}
samples_through_a_variable    | -                             | -
comment_in_stage_code         | -                             | -
stage_code                    | quantized                     | -
kernel_code                   | recipe compiled_check comparison     | -
library_version               | {ALL}                         | -
artifact_tampered             | -                             | optimized_float
artifact_removed              | -                             | statistics
artifact_and_blob_tampered    | optimized_float               | -
stamps_removed                | -                             | {ALL}
doit_db_deleted               | -                             | -
moved_to_another_directory    | -                             | -
"""

ROWS = [[cell.strip() for cell in row.split("|")] for row in TABLE.strip().splitlines()[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "runs", "recalled"), ROWS, ids=[row[0] for row in ROWS])
def test_exactly_the_expected_nodes_run(
    built: Workspace, change: str, runs: str, recalled: str
) -> None:
    environment = CHANGES[change](built) or {}
    run = built.doit(environment=environment)
    assert made(run, "made") == nodes(runs)
    assert made(run, "recalled") == nodes(recalled)
    again = built.doit(environment=environment)
    assert made(again, "made") | made(again, "recalled") == set()


def nodes(names: str) -> set[str]:
    found = set()
    for name in names.split():
        *variant, stage = name.split(":")
        stage, _, target = stage.partition("@")
        if stage == "-":
            continue
        targets = [target] if target else ["rdk-x5", "ara240"]
        fanned = [f"{t}/{stage}" for t in targets] if stage in BEHIND.split() else [stage]
        found |= {f"@{variant[0]}:{short}" if variant else short for short in fanned}
    return found


# -- the changes; each may return environment variables for the run ------------------------


def edit(path: Path, pattern: str, replacement: str) -> None:
    text = path.read_text()
    changed = re.sub(pattern, replacement, text, count=1)
    assert changed != text, f"nothing to change in {path}"
    path.write_text(changed)


def yaml(workspace: Workspace) -> Path:
    return workspace.project / "project.yaml"


def key_order(workspace: Workspace) -> None:
    text = yaml(workspace).read_text()
    head, *sections = re.split(r"(?m)^(?=\w)", text)
    yaml(workspace).write_text(head + "".join(s.rstrip() + "\n" for s in reversed(sections)))


def section_in_a_file_of_its_own(workspace: Workspace) -> None:
    edit(yaml(workspace), r"calibration:\n  method: max.*\n", "")
    (workspace.project / "calibration.yaml").write_text("method: max\n")


def method_and_back(workspace: Workspace) -> None:
    edit(yaml(workspace), "method: max", "method: kl")
    assert made(workspace.doit(), "made") == nodes(BEHIND)
    edit(yaml(workspace), "method: kl", "method: max")


def variant(workspace: Workspace, overlay: str) -> None:
    with yaml(workspace).open("a") as file:
        file.write(f"variants: {{p9: {overlay}}}\n")


def variant_edited(workspace: Workspace) -> None:
    variant(workspace, "{calibration: {method: kl}}")
    assert made(workspace.doit(), "made") == nodes(P9)
    edit(yaml(workspace), "method: kl", "method: max_percentile, percentile: 0.5")


def variant_removed(workspace: Workspace) -> None:
    variant(workspace, "{calibration: {method: kl}}")
    assert made(workspace.doit(), "made") == nodes(P9)
    edit(yaml(workspace), "variants: .*\n", "")


def samples_through_a_variable(workspace: Workspace) -> dict[str, str]:
    elsewhere = workspace.root / "elsewhere"
    (workspace.project / "samples").rename(elsewhere)
    edit(yaml(workspace), "files: samples", "files: ${ENV:SAMPLES}")
    return {"SAMPLES": str(elsewhere)}


def target_override(workspace: Workspace) -> None:
    edit(yaml(workspace), "- ara240", "- ara240: {calibration: {method: kl}}")


def target_override_and_back(workspace: Workspace) -> None:
    target_override(workspace)
    assert made(workspace.doit(), "made") == nodes(ARA240)
    edit(yaml(workspace), "- ara240: {.*}", "- ara240")


def pixel(workspace: Workspace) -> None:
    path = workspace.project / "samples" / "0007.npy"
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] = 255
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_mtime_ns, path.stat().st_size) == (before.st_mtime_ns, before.st_size)


def sample_added(workspace: Workspace) -> None:
    samples = workspace.project / "samples"
    data = bytearray((samples / "0000.npy").read_bytes())
    data[-1] = 200
    (samples / "9999.npy").write_bytes(data)


def weights(workspace: Workspace) -> None:
    import onnx
    import onnx.numpy_helper

    path = workspace.project / "model.onnx"
    model = onnx.load(path)
    tensor = next(t for t in model.graph.initializer if t.name == "classifier_weight")
    changed = onnx.numpy_helper.to_array(tensor) * 1.5
    tensor.CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
    onnx.save(model, path)


def code(workspace: Workspace, file: str, pattern: str, replacement: str) -> dict[str, str]:
    """The package beside the workspace, with one file edited."""
    site = workspace.root / "site"
    shutil.copytree(REPO / "pipeline", site)  # and what is compiled of it
    edit(site / "npumake" / file, pattern, replacement)
    return {"PYTHONPATH": str(site)}


def library_version(workspace: Workspace) -> dict[str, str]:
    """Metadata of a NumPy that is found before the installed one's."""
    found = workspace.root / "site" / "numpy-99.0.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 99.0\n")
    return {"PYTHONPATH": str(found.parent)}


def tamper(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def artifact(workspace: Workspace) -> Path:
    return workspace.project / "out" / "optimized_float.onnx"


def tamper_with_blob(workspace: Workspace) -> None:
    name = workspace.digests()["optimized_float.onnx"]
    tamper(workspace.root / "cache" / "blobs" / name[:2] / name[2:])
    tamper(artifact(workspace))


def stamps_removed(workspace: Workspace) -> None:
    for path in (workspace.project / "out" / ".npumake").iterdir():
        path.unlink()


def doit_db_deleted(workspace: Workspace) -> None:
    for path in workspace.root.glob(".doit.db*"):
        path.unlink()


def moved(workspace: Workspace) -> None:
    workspace.project.rename(workspace.root / "elsewhere")
    workspace.project.mkdir()
    (workspace.root / "elsewhere").rename(workspace.project)


Change = Callable[[Workspace], dict[str, str] | None]

CHANGES: dict[str, Change] = {
    "nothing": lambda w: None,
    "comment_in_yaml": lambda w: edit(yaml(w), "model:", "# a comment\nmodel: # another"),
    "key_order_in_yaml": key_order,
    "section_in_a_file_of_its_own": section_in_a_file_of_its_own,
    "calibration_method": lambda w: edit(yaml(w), "method: max", "method: kl"),
    "calibration_method_and_back": method_and_back,
    "pixel_with_mtime_preserved": pixel,
    "sample_added": sample_added,
    "model_weights": weights,
    "target_added": lambda w: edit(yaml(w), "  - ara240", "  - nash-e\n  - ara240"),
    "target_removed": lambda w: edit(yaml(w), "  - ara240.*\n", ""),
    "variant_added": lambda w: variant(w, "{calibration: {method: kl}}"),
    "variant_that_changes_nothing": lambda w: variant(w, "{calibration: {method: max}}"),
    "variant_edited": variant_edited,
    "variant_removed": variant_removed,
    "variant_of_a_shared_section": lambda w: variant(w, "{inputs: {image: {scale: 0.125}}}"),
    "target_override": target_override,
    "target_override_and_back": target_override_and_back,
    "samples_through_a_variable": samples_through_a_variable,
    "comment_in_stage_code": lambda w: code(
        w, "stages/quantized.py", '"""quantized:', '# a comment\n"""quantized: indeed'
    ),
    "stage_code": lambda w: code(
        w, "stages/quantized.py", "    return ", "    assert calibrated\n    return "
    ),
    "kernel_code": lambda w: code(w, "kernels/measure.py", "1.0", "1.00 * 1"),
    "library_version": library_version,
    "artifact_tampered": lambda w: tamper(artifact(w)),
    "artifact_removed": lambda w: (w.project / "out" / "statistics.npz").unlink(),
    "artifact_and_blob_tampered": tamper_with_blob,
    "stamps_removed": stamps_removed,
    "doit_db_deleted": doit_db_deleted,
    "moved_to_another_directory": moved,
}


def test_every_row_has_its_change() -> None:
    assert [row[0] for row in ROWS] == list(CHANGES)
