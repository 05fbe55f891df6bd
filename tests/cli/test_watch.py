"""`npumake watch`: builds on save, tells what changed, survives errors, and ends with 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from npumake.cli.main import main
from npumake.make.watched_files import WatchedProject
from npumake.project.files import FileSource
from npumake.report.build_facts import build_facts
from processes import LIMIT, environment, eventually, marked
from workspaces import Workspace


class Watching:
    """A running `npumake watch`; `lines` are those it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def ready(self, times: int) -> list[str]:
        """The lines of the last build, once it waits for the change after so many."""
        assert eventually(lambda: self._waits() >= times or self.process.poll() is not None)
        assert self._waits() == times, "\n".join(self.lines)
        starts = [i for i, line in enumerate(self.lines) if line.startswith("changed: ")]
        return self.lines[starts[-1] if starts else 0 :]

    def _waits(self) -> int:
        return sum(line.startswith("watching ") for line in [*self.lines])


@contextmanager
def watching(workspace: Workspace, *names: str, mark: str = "watch") -> Iterator[Watching]:
    command = [sys.executable, "-m", "npumake", "watch", *names]
    variables = environment(f"{mark} {workspace.root}")
    with subprocess.Popen(
        command,
        cwd=workspace.root,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield Watching(process)
        finally:
            process.kill()


def save(workspace: Workspace, old: str, new: str) -> None:
    """As an editor saves: a new file in place of the old one."""
    file = workspace.project / "project.yaml"
    assert old in file.read_text()
    file.with_suffix(".new").write_text(file.read_text().replace(old, new))
    file.with_suffix(".new").replace(file)


@pytest.mark.slow
def test_a_save_builds_and_tells_the_change_an_error_does_not_end_it(built: Workspace) -> None:
    with watching(built) as watch:
        assert "16 current in" in " ".join(watch.ready(1))
        save(built, "method: max", "method: max_percentile\n  percentile: 0.9")
        lines = watch.ready(2)
        assert lines[0] == "changed: projects/digits/project.yaml"
        assert "~ digits:rdk-x5" in lines
        assert any("output logits" in line and "→" in line for line in lines)
        save(built, "method: max_percentile", "method: no_such")
        lines = watch.ready(3)
        assert any(line.startswith("error: ") for line in lines)
        assert any(line.startswith("  --> projects/digits/project.yaml:17") for line in lines)
        assert not any(line.startswith("~ ") for line in lines)
        save(built, "method: no_such\n  percentile: 0.9", "method: max")
        assert "~ digits:ara240" in watch.ready(4)  # against the last build that succeeded
        save(built, "# 64 images", "# images")
        assert "no change in accuracy, size and placement" in watch.ready(5)
        watch.process.send_signal(signal.SIGINT)
        assert watch.process.wait(LIMIT) == 130


@pytest.mark.slow
def test_what_is_added_removed_or_broken_from_the_start_is_seen(built: Workspace) -> None:
    save(built, "method: max", "method: [")
    with watching(built, "digits:samples") as watch:
        assert any(line.startswith("error: ") for line in watch.ready(1))
        save(built, "method: [", "method: max")
        watch.ready(2)
        (sample, *_) = sorted(built.project.joinpath("samples").iterdir())
        sample.with_name("z.npy").write_bytes(sample.read_bytes())
        assert watch.ready(3)[0] == "changed: projects/digits/samples/z.npy"
        sample.with_name("z.npy").unlink()
        assert watch.ready(4)[0] == "changed: projects/digits/samples/z.npy"


@pytest.mark.slow
def test_an_interrupted_build_leaves_no_process(fresh: Workspace) -> None:
    with watching(fresh, mark="interrupted") as watch:
        assert eventually(lambda: any(line.startswith("made ") for line in [*watch.lines]))
        watch.process.send_signal(signal.SIGINT)
        assert watch.process.wait(LIMIT) == 130
        assert eventually(lambda: not marked(f"interrupted {fresh.root}"))


@pytest.mark.parametrize(
    ("names", "what"),
    [(["digit"], "no project and no node `digit`"), (["digits:rdk-x5/x", "q"], "no project and")],
)
def test_an_unknown_project_is_one_error(built, capsys, monkeypatch, names, what) -> None:
    monkeypatch.chdir(built.root)
    assert main(["watch", *names]) == 2
    assert capsys.readouterr().err.startswith(f"error: {what}")


def test_where_no_project_is_there_is_nothing_to_watch(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["watch"]) == 2
    assert capsys.readouterr().err.startswith("error: no project here")


def touched(file: Path, how: str) -> None:
    {
        "edited in place": lambda: file.write_text("longer than before"),
        "replaced": lambda: os.replace(_other(file), file),
        "removed": file.unlink,
        "same bytes, written again": lambda: file.write_bytes(file.read_bytes()),
    }[how]()


def _other(file: Path) -> Path:
    other = file.with_name(".other")
    other.write_bytes(file.read_bytes())
    return other


@pytest.mark.parametrize(
    "how", ["edited in place", "replaced", "removed", "same bytes, written again"]
)
@pytest.mark.parametrize("name", ["project.yaml", "gates.yml", "samples/a.npy", "../shared.yaml"])
def test_every_change_of_every_file_shows_in_the_stamps(tmp_path, name, how) -> None:
    project = tmp_path / "project"
    (project / "samples").mkdir(parents=True)
    file = project / name
    file.write_text("before")
    sources = (FileSource(("data",), "samples/*.npy", many=True),)
    watch = WatchedProject(project, sources, ("../shared.yaml",))
    before = watch.stamps()
    touched(file, how)
    assert watch.stamps() != before


def test_nothing_changed_shows_nothing_and_what_cannot_be_listed_is_skipped(tmp_path) -> None:
    sources = (FileSource(("model", "path"), "${ENV:NO_SUCH_VARIABLE}/m.onnx", many=False),)
    watch = WatchedProject(tmp_path, sources).with_file(None).with_file(f"{tmp_path}/a.yaml")
    assert watch.stamps() == watch.stamps() == {f"{tmp_path}/a.yaml": None}


def test_the_facts_are_accuracy_size_and_placement(scored_once: Workspace) -> None:
    out = scored_once.project / "out"
    files = {
        "comparison": out / "comparison.rdk-x5.json",
        "compiled_check": out / "compiled_check.rdk-x5.json",
        "evaluation": out / "evaluation.rdk-x5.json",
        "verdict": out / "verdict.rdk-x5.json",
        "compiled": out / "digits.rdk-x5.hybrid",
    }
    facts = build_facts(files)
    assert set(facts) == {"cosine", "compiled cosine", "scores", "gates", "size", "placement"}
    assert facts["size"] == {"bytes": files["compiled"].stat().st_size}
    assert set(facts["placement"].values()) <= {"NPU", "BPU", "CPU"}
    assert set(build_facts({"compiled": files["compiled"]})) == {"size"}
