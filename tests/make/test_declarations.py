"""What the stages declare is remembered; what is remembered is believed only when it is whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npumake.cache.sealed import sealed
from npumake.make.declarations import stages
from npumake.make.memory import BuildMemory
from npumake.stages.stage import every_stage
from workspaces import Workspace


def test_what_is_remembered_is_what_the_signatures_say(tmp_path: Path) -> None:
    assert stages(BuildMemory(tmp_path)) == every_stage()
    written = (tmp_path / "stages.json").read_bytes()
    assert stages(BuildMemory(tmp_path)) == every_stage()
    assert (tmp_path / "stages.json").read_bytes() == written


def resealed(edit: Callable[[Any], None]) -> Callable[[bytes, str], bytes]:
    """The memo with an edit, under a seal that fits it: somebody else's, not a broken disk's."""

    def edited(memo: bytes, code: str) -> bytes:
        content = json.loads(memo)["content"]
        edit(content)
        return sealed(f"stages of {code}", content)

    return edited


@pytest.mark.parametrize(
    "damage",
    [
        lambda memo, _: b"",
        lambda memo, _: memo[:100],
        lambda memo, _: b"[]",
        lambda memo, _: memo.replace(b'"samples"', b'"sample"'),
        lambda memo, _: memo.replace(b'".onnx"', b'".nnx"'),
        resealed(lambda told: told.pop()),
        resealed(lambda told: told.append(told[0])),
        resealed(lambda told: told[0].update(suffix="/../../x.onnx")),
        resealed(lambda told: told[0].update(name="os")),
        resealed(lambda told: told[0].update(colour="red")),
        resealed(lambda told: told[0].pop("suffix")),
        resealed(lambda told: told.insert(0, None)),
    ],
)
def test_a_damaged_memo_is_read_anew(tmp_path: Path, damage: Callable[[bytes, str], bytes]) -> None:
    memory, file = BuildMemory(tmp_path), tmp_path / "stages.json"
    stages(memory)
    whole = file.read_bytes()
    file.write_bytes(damage(whole, memory.code.package_digest))
    assert file.read_bytes() != whole
    assert stages(memory) == every_stage()
    assert file.read_bytes() == whole


def test_a_memo_of_other_code_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages(BuildMemory(tmp_path))
    before = (tmp_path / "stages.json").read_bytes()
    other = BuildMemory(tmp_path)
    monkeypatch.setitem(other.code.__dict__, "package_digest", "0" * 64)
    assert stages(other) == every_stage()
    assert (tmp_path / "stages.json").read_bytes() != before


@pytest.mark.slow
def test_a_plan_loads_no_stage(built: Workspace) -> None:
    yaml = built.project / "project.yaml"
    yaml.write_text(yaml.read_text() + "# another text, the same plan\n")
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "NPUMAKE_PARANOID")}
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "npumake.cli.main", "list"],
        cwd=built.root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "npumake.make.plan" in loaded
    assert loaded & {"numpy", "onnx", "npumake.quant", "npumake.stages.recipe"} == set()
    assert run.stdout.count("current") == 16
