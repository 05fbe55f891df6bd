"""Builds a project of the gallery for every chip of its table, and runs the artifacts.

The project is copied into a folder of its own, with TARGETS in place of its targets. The cache of
this repository is used: what was built before is taken from there.

A compiled file runs in its own runtime: a .hybrid in exact integers, a .tflite in LiteRT, an
OpenVINO .zip in OpenVINO. Of an Ethos-U file it is the .tflite that Vela was given, rebuilt from
the quantized graph: no machine but the chip runs Vela's output.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from npumake.debug.compiled_file.runs import CompiledPart, runs_of, why_not_run
from npumake.engine.lower import lowered
from npumake.graph import Graph
from npumake.runtime import Session
from npumake.targets.reader import read_target

REPO = Path(__file__).parents[1]
TARGETS = ("rdk-x5", "ara240", "tflite", "ethos-u55-128", "openvino-cpu")
BEST_TARGETS = ("rdk-x5", "ara240")  # a symmetric and an asymmetric grid; a search takes minutes
ARTIFACTS = ("float", "int8", "compiled", "best, compiled")
IGNORED = ("out", "cache", ".doit.db*", "__pycache__", "pictures", "result.png")
LEFT_OUT = ("evaluation", "gates", "report")  # the table measures itself
OPENVINO_PYTHON = "NPUMAKE_OPENVINO_PYTHON"

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Artifact:
    name: str  # of ARTIFACTS
    file: Path
    quantized: Path  # the graph that the file was compiled from
    target: str

    @property
    def input_name(self) -> str:
        (value,) = Graph.load(self.quantized).inputs
        return str(value.name)

    def outputs(self, feeds: Sequence[Arrays]) -> Iterator[Arrays]:
        """The outputs by name for each feed, in the axis order of the model."""
        if self.file.suffix not in (".onnx", ".hybrid"):
            yield from self._of_runtime(feeds)
            return
        session = Session(self.file)
        for feed in feeds:
            yield dict(zip(session.output_names, session.run(None, feed), strict=True))

    def _of_runtime(self, feeds: Sequence[Arrays]) -> Iterator[Arrays]:
        target, graph = read_target(self.target), Graph.load(self.quantized)
        program = lowered(graph, target.rounding, target.runnable)
        part = CompiledPart(graph, program, target, self.file.read_bytes())
        yield from (run.outputs for run in runs_of(part, feeds))


def targets_that_run() -> tuple[str, ...]:
    """Those of TARGETS whose compiler and runtime are installed; prints why others are left out."""
    if importlib.util.find_spec("openvino"):
        os.environ.setdefault(OPENVINO_PYTHON, sys.executable)
    reasons = {name: why_not_run(read_target(name)) for name in TARGETS}
    for name, reason in reasons.items():
        if reason:
            print(f"{name}: skipped, {reason}")
    return tuple(name for name, reason in reasons.items() if not reason)


def build(project: Path, folder: Path, targets: Sequence[str]) -> Path:
    """A copy of the project in `folder`, built for the targets, without evaluation and report."""
    copy = folder / project.name
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns(*IGNORED))
    document: dict[str, Any] = yaml.safe_load((project / "project.yaml").read_text("utf-8"))
    document = {key: value for key, value in document.items() if key not in LEFT_OUT}
    document["targets"] = list(targets)
    for variant in document.get("variants", {}).values():
        variant["targets"] = [name for name in BEST_TARGETS if name in targets]
    _make_absolute(document, project)
    (copy / "project.yaml").write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    environment = {"NPUMAKE_CACHE": str(REPO / "cache"), **os.environ}
    command = [sys.executable, "-m", "npumake.cli.main", "build"]
    subprocess.run(command, cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)
    return copy


def _make_absolute(document: dict[str, Any], project: Path) -> None:
    """Paths that leave the project, which the copy does not hold."""
    entries = (
        (document["model"], "path"),
        *((source, "files") for source in document["data"].values()),
    )
    for section, key in entries:
        if section[key].startswith("../"):
            section[key] = os.path.abspath(project / section[key])


def artifacts(built: Path, target: str) -> Iterator[Artifact]:
    """What a build left in out/ for the target, in the order of ARTIFACTS."""
    out = built / "out"
    quantized = out / f"quantized.{target}.onnx"
    best = out / "@best" / quantized.name
    compiled = f"{built.name}.{target}{read_target(target).suffix}"
    files = (
        (out / "original_float.onnx", quantized),
        (quantized, quantized),
        (out / compiled, quantized),
        (out / "@best" / compiled, best),
    )
    for name, (file, graph) in zip(ARTIFACTS, files, strict=True):
        if file.is_file():
            yield Artifact(name, file, graph, target)
