"""On 80 columns every verb's tables keep where a node runs, figures, types and verdicts."""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from malformed.runner import Server
from npumake.cli.main import VERBS as MODULES
from npumake.cli.verb import parser_of
from npumake.data.samples import Samples
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph, parse_text
from npumake.targets.reader import read_target
from workspaces import REPO, Workspace, lay_out_none

WIDTH = 80
HEAD, TAIL = "/model.22/cv3.2", "the_last_of_many/Conv"
LONG = f"{HEAD}/a_name_that_no_terminal_holds_beside_its_figures/{TAIL}"
MODEL = f"""<ir_version: 8, opset_import: ["" : 13]>
agraph (float[1,2,6,6] image) => (float[1,2,6,6] y)
    <float[2,2,1,1] w = {{0.5,-0.25,0.125,0.75}}> {{
    ["{LONG}_1"] c = Conv<kernel_shape = [1, 1]>(image, w)
    ["{LONG}_2"] s = Sin(c)
    ["{LONG}_3"] y = Conv<kernel_shape = [1, 1]>(s, w) }}"""
YAML = """model: {path: model.onnx}
data: {image: {random: 8}}
calibration: {method: max}
targets: [rdk-x5, tflite]
variants: {finer: {calibration: {method: mse}}}
"""
OUT = "projects/net/out"
VERBS = {
    "build": "build",
    "list": "list",
    "check a project": "check projects/net --target rdk-x5",
    "check a model": "check projects/net/model.onnx --target rdk-x5",
    "compare": "compare net:rdk-x5 --dump dump",
    "perf": f"perf {OUT}/net.rdk-x5.hybrid",
    "verify": f"verify -q {OUT}/quantized.rdk-x5.onnx -b {OUT}/net.rdk-x5.hybrid",
    "diff": f"diff {OUT}/comparison.rdk-x5.json {OUT}/comparison.tflite.json",
    "debug blame": "debug blame net:rdk-x5",
    "debug sensitivity": "debug get-sensitivity-of-nodes net:rdk-x5",
}
WITHOUT_WIDE = ("perf", "verify")  # they have lines, which no width shortens
KEPT = re.compile(
    r"BPU|CPU|u?int\d+\S*|float\S*|current|cached|would|run|agree\w*|differs|"
    r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?%?"
)
HEADS = ("ON", "Cosine", "Threshold", "DataType", "Status", "State")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return Server(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def net(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = lay_out_none(tmp_path_factory.mktemp("w"), "net")
    workspace.project.mkdir()
    parse_text(MODEL).save(workspace.project / "model.onnx")
    (workspace.project / "project.yaml").write_text(YAML)
    done = server.run(workspace.root, ("build",))
    assert done.code == 0, done.output
    dump(workspace)
    return workspace


def dump(workspace: Workspace) -> None:
    """As a board writes it."""
    out, target = workspace.project / "out", read_target("rdk-x5")
    program = lowered(Graph.load(out / "quantized.rdk-x5.onnx"), target.rounding, target.runnable)
    inner = [name for step in program.instructions for name in step.outputs]
    made = ReferenceSession(program).run(inner, Samples.load(out / "samples.npz").read(0))
    (workspace.root / "dump").mkdir()
    np.savez(workspace.root / "dump/tensors.npz", **dict(zip(inner, made, strict=True)))


def told(server: Server, net: Workspace, command: str, columns: int | None = None) -> list[str]:
    """The lines; what a build has compared is taken away, so that it tells of it again."""
    for file in net.project.glob("out/comparison*"):
        if command.startswith("build"):
            file.unlink()
    variables = {"COLUMNS": str(columns)} if columns else {}
    done = server.run(net.root, tuple(command.split()), **variables)
    assert done.code == 0, done.output
    return [line for line in done.output.splitlines() if "seconds" not in line]


def kept(line: str) -> list[float | str]:
    """The words of a line that must not give way."""
    words = [word for word in line.split() if KEPT.fullmatch(word)]
    return [rounded(word) if word.strip("-+%")[:1].isdigit() else word for word in words]


def rounded(figure: str) -> float:
    """To the digits that a narrow threshold has."""
    return float(f"{float(figure.rstrip('%')):.3g}")


def rows(lines: list[str]) -> list[str]:
    """Those of tables."""
    found: list[str] = []
    in_table = False
    for line in lines:
        in_table = line.lstrip().startswith("──") or (in_table and line.startswith(" "))
        if in_table and line.strip("─ "):
            found.append(line)
    return found


def holds(narrow: list[str], whole: list[str]) -> None:
    """Row by row the same words and figures; names by their heads and tails."""
    assert len(narrow) == len(whole)
    for one, other in zip(narrow, whole, strict=True):
        lacking = [word for word in kept(other) if word not in kept(one)]
        assert lacking in ([], [0.0]), f"{lacking}: {one}"
        for short in (word for word in one.split() if "..." in word):
            head, tail = re.fullmatch(r"(.+)\.\.\.(.+)", short).groups()
            assert [w for w in other.split() if w.startswith(head) and w.endswith(tail)]


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_keeps_what_counts(name: str, server: Server, net: Workspace) -> None:
    narrow, whole = (told(server, net, VERBS[name], columns) for columns in (WIDTH, None))
    holds(rows(narrow), rows(whole))
    assert [line for line in rows(narrow) if len(line) > WIDTH] == []
    text, shown = "\n".join(narrow), "\n".join(whole)
    assert [head for head in HEADS if head in shown and head not in text] == []


@pytest.mark.parametrize("name", [name for name in VERBS if name not in WITHOUT_WIDE])
def test_wide_shows_names_whole(name: str, server: Server, net: Workspace) -> None:
    lines = told(server, net, f"{VERBS[name]} --wide", WIDTH)
    assert [line for line in lines if "..." in line] == []
    assert rows(lines) == rows(told(server, net, VERBS[name], 1000))


# They draw a tree, or write a summary of their own.
NO_TABLE = ("graph", "ci")
EXPORTED = [name for name in VERBS if name not in WITHOUT_WIDE] + ["targets", "scores", "show"]
MORE = {
    "targets": "targets",
    "scores": "list --scores",
    "show": f"show {OUT}/comparison.rdk-x5.json",
}


def verbs_with(option: str) -> set[str]:
    """The verbs, and the functions of a verb, that have an option."""
    modules = {verb: import_module(f"npumake.cli.{name}") for verb, name in MODULES.items()}
    found: set[str] = set()
    waiting = [("", parser_of(modules))]
    while waiting:
        name, parser = waiting.pop()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [
                    (f"{name} {verb}".strip(), each) for verb, each in action.choices.items()
                ]
            elif option in action.option_strings:
                found.add(name)
    return found


def test_every_verb_with_a_table_writes_it_for_machines() -> None:
    wide = {name for name in verbs_with("--wide") if name not in NO_TABLE}
    formats = {name for name in verbs_with("--format") if not name.startswith("synap")}
    assert wide == formats
    assert len(wide) > 10


def exported(net: Workspace, name: str, form: str) -> str:
    command = MORE.get(name) or VERBS[name]
    done = subprocess.run(
        [sys.executable, "-m", "npumake.cli.main", *command.split(), "--format", form],
        cwd=net.root,
        env={**os.environ, "PYTHONPATH": str(REPO / "pipeline"), "COLUMNS": "40"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPORTED)
def test_a_table_for_machines_has_rows_and_nothing_beside_it(name: str, net: Workspace) -> None:
    for file in net.project.glob("out/comparison*"):
        if name == "build":
            file.unlink()
    heads, *rows = csv.reader(io.StringIO(exported(net, name, "csv")))
    assert rows
    assert {len(row) for row in rows} == {len(heads)}
    assert not any("..." in cell for row in rows for cell in row)
    if name == "list":
        lines = exported(net, name, "markdown").splitlines()
        assert all(line.startswith("| ") and line.endswith(" |") for line in lines)
        assert len(lines) == len(rows) + 2


@pytest.mark.slow
def test_every_artifact_is_shown_within(server: Server, net: Workspace) -> None:
    files = [f for f in sorted(net.project.glob("out/*")) if f.suffix != ".html" and f.is_file()]
    assert files
    for file in files:
        name = f"show {Path(OUT) / file.name}"
        narrow, whole = (told(server, net, name, columns) for columns in (WIDTH, None))
        holds(rows(narrow), rows(whole))
        assert [line for line in rows(narrow) if len(line) > WIDTH] == []


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["build", "show net:rdk-x5/compiled"])
def test_a_reader_who_has_enough_ends_no_build(verb: str, net: Workspace) -> None:
    compared = [*net.project.glob("out/comparison*")]
    for file in compared:
        file.unlink()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "npumake.cli.main", *verb.split()],
        cwd=net.root,
        env={**os.environ, "PYTHONPATH": str(REPO / "pipeline")},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.stderr == ""
    assert (done.returncode, [f.exists() for f in compared]) == (
        (0, [True] * len(compared)) if verb == "build" else (141, [False] * len(compared))
    )
