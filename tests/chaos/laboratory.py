"""A small project whose builds are compared with clean ones, and what a build made of it.

Two kinds: one with a custom operator, a metric in Python and files that both import, for a chip;
one whose compiled file a runtime runs that no import shows. Commands are run by forks
(forks.py); where our own code is mutated, by a fork that loads the mutated package.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from custom.files import MODEL, OURS
from malformed.runner import Outcome, Server
from npumake.cache.signature import FINE_MARGIN_NS
from npumake.digest import Json
from npumake.graph import parse_text
from workspaces import REPO, Workspace, lay_out_none, made, remember_code

NAME = "mice"
SAMPLES = 8
COMMON: Mapping[str, Json] = {
    "model": {"path": "model.onnx", "split": "none"},
    "data": {"image": {"files": "samples/*.npy", "stacked": False}},
    "inputs": {"image": {"mean": 0.0, "scale": 1.0}},
    "calibration": {
        "method": "max",
        "percentile": 0.99995,
        "bins": 2048,
        "momentum": 0.9,
        "symmetric": True,
        "per_channel": False,
    },
    "quantization": {
        "mode": "standard",
        "equalize": False,
        "clip_weights": False,
        "round_weights": "nearest",
        "bias_correction": False,
        "widen_answers": False,
    },
    "compile": {"optimize_level": "O3", "core_num": 1, "debug": False},
    "comparison": {"compiled": 2},
}
KINDS: Mapping[str, Json] = {
    "custom": {
        **COMMON,
        "targets": ["rdk-x5"],
        "custom_operators": [{"files": "ops/*.py", "with": ["lib/gain.py"]}],
        "evaluation": {
            "dataset": {"files": "val/*/*.npy", "label_offset": 0},
            "metric": "score.py:right",
            "with": ["lib/most.py"],
            "limit": 4,
        },
    },
    "late": {**COMMON, "targets": ["tflite"]},
}
OPERATOR = OURS.replace("import numpy as np", "from gain import GAIN").replace(
    "+ self._bias", "* GAIN + self._bias"
)
SCORE = """from most import most

def right(answers):
    return sum(most(outputs["y"]) == int(label) for outputs, label in answers)
"""
MOST = "FIRST = 0\n\ndef most(row):\n    return int(row.argmax()) + FIRST\n"


@dataclass
class Laboratory:
    """`site` is the package that a command imports, where it is not the tested one, and the
    metadata of libraries; `past` holds what was remembered before, by file."""

    workspace: Workspace
    ours: Server
    libraries: Server
    site: Path
    past: dict[str, list[bytes]] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.workspace.project

    @property
    def package(self) -> Path:
        """A copy of our own, made when it is first asked for."""
        found = self.site / "npumake"
        if not found.exists():
            shutil.copytree(REPO / "pipeline/npumake", found)
        return found

    def run(self, *command: str, at: Workspace | None = None) -> Outcome:
        where = at or self.workspace
        is_changed = (self.site / "npumake").exists()
        server = self.libraries if is_changed else self.ours
        cache = str(where.root / "cache")
        return server.run(where.root, command, [self.site], NPUMAKE_CACHE=cache)

    def clean(self, root: Path) -> tuple[int, dict[str, str]]:
        """The exit code and the digests of a build in another place, where nothing was built."""
        ignored = shutil.ignore_patterns("out", ".doit.db*", "cache")
        shutil.copytree(self.workspace.root, root, ignore=ignored)
        remember_code(root)
        other = Workspace(root, NAME)
        code = self.run("build", at=other).code
        found = digests(other)
        shutil.rmtree(root)
        return code, found

    @property
    def plan_file(self) -> Path:
        return self.project / "out/.npumake/plan.json"

    def plan(self) -> list[dict[str, Any]]:
        return json.loads(self.plan_file.read_bytes())["content"]["plan"]["nodes"]

    def keep_the_past(self) -> None:
        for file in self.remembered():
            self.past.setdefault(str(file), []).append(file.read_bytes())

    def remembered(self) -> list[Path]:
        """What a build remembers beside records and blobs."""
        tables = (*self.workspace.root.glob("cache/*.json"), *self.seals)
        return sorted([*self.project.glob("out/.npumake/*.json"), *tables])

    @property
    def seals(self) -> list[Path]:
        return sorted(self.workspace.root.glob("cache/seals/*.json"))

    def seal(self) -> None:
        """Builds once more, when all that was built is old enough: then a seal answers for it."""
        time.sleep(2 * FINE_MARGIN_NS / 1e9)
        outcome = self.run("build")
        assert nodes(outcome.output, "made") == set(), outcome.output
        assert any(self._is_sealed_by(file) for file in self.seals)

    def _is_sealed_by(self, file: Path) -> bool:
        """Whether the seal is whole and has the project: that of another Python may be damaged."""
        try:
            return str(self.project) in json.loads(file.read_bytes())["content"]["projects"]
        except (ValueError, KeyError, TypeError):
            return False


def digests(workspace: Workspace) -> dict[str, str]:
    return {name: d for name, d in workspace.digests().items() if not name.startswith(".")}


def nodes(output: str, how: str) -> set[str]:
    """The nodes that a build reported as `made` or `recalled`."""
    return made(subprocess.CompletedProcess([], 0, output), how)


def lay_out_mice(root: Path, kind: str) -> Workspace:
    """The project of that kind, in a workspace where nothing is built."""
    workspace = lay_out_none(root, NAME)
    project = workspace.project
    rng = np.random.default_rng(1)
    for folder in ("samples", "ops", "lib", "val/0", "val/1"):
        (project / folder).mkdir(parents=True)
    images = rng.normal(size=(SAMPLES, 1, 1, 8, 8)).astype(np.float32)
    for number, image in enumerate(images):
        np.save(project / "samples" / f"{number}.npy", image)
        np.save(project / "val" / str(number % 2) / f"{number}.npy", image)
    files = {"ops/shrink.py": OPERATOR, "lib/gain.py": "GAIN = 1.5\n"}
    files |= {"score.py": SCORE, "lib/most.py": MOST}
    for name, text in files.items():
        (project / name).write_text(text)
    body = MODEL if kind == "custom" else MODEL.replace(SHRINK, POOL)
    parse_text(body).save(project / "model.onnx")
    write_yaml(project, KINDS[kind])
    return workspace


SHRINK = "vendor.ops.Shrink2<kernel_size = 2, bias = 0.5>(r)"
POOL = "MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)"


def write_yaml(project: Path, document: Json) -> None:
    (project / "project.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def read_yaml(project: Path) -> Json:
    return yaml.safe_load((project / "project.yaml").read_text())
