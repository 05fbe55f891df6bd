"""Every command the README and the guide show is run, in order, as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from forks import command_folder
from workspaces import REPO, Workspace

PAGES = sorted(path.name for path in (REPO / "docs").glob("*.md"))
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(file: str) -> list[str]:
    return BLOCKS.findall((REPO / file).read_text())


GUIDE = [
    (page, number)
    for page in PAGES
    if page != "quickstart.md"  # tests/test_howto.py runs it, with a model and pictures
    for number in range(len(blocks(f"docs/{page}")))
]


def run(script: str, root: Path, *folders: Path) -> subprocess.CompletedProcess[str]:
    """The script as typed there, with the commands of these folders and of this Python's
    environment."""
    environment = {k: v for k, v in os.environ.items() if k != "CI"}
    places = [*folders, Path(sys.executable).parent, environment["PATH"]]
    environment["PATH"] = ":".join(map(str, places))
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_first_two_blocks_are_one_line_each_and_make_their_own_environment() -> None:
    install, tests = blocks("README.md")[:2]
    for block in (install, tests):
        assert block.count("\n") == 1
        assert block.startswith("python3 -m venv --without-pip .venv && ")
    assert install.rstrip().endswith(".venv/bin/doit")
    assert tests.rstrip().endswith("-m pytest")


@pytest.mark.slow
def test_what_the_readme_types_in_a_project(built: Workspace) -> None:
    (block,) = blocks("README.md")[2:]
    activate, *lines = block.splitlines()
    assert activate == ". .venv/bin/activate"  # here the environment is active already
    done = run("\n".join(lines), built.root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 current" in done.stdout
    assert "digits.rdk-x5.hybrid" in done.stdout


@pytest.mark.slow
def test_the_figures_in_the_readme_are_those_evaluate_prints(built: Workspace) -> None:
    done = run("cd projects/digits && python evaluate.py", built.root)
    assert done.returncode == 0, done.stderr
    top1 = {words[0]: words[1] for words in map(str.split, done.stdout.splitlines()[1:])}
    table = {}
    for row in re.findall(r"^\| top-1, (\S+) .*$", (REPO / "README.md").read_text(), re.MULTILINE):
        line = next(
            x for x in (REPO / "README.md").read_text().splitlines() if f"top-1, {row}" in x
        )
        table[row] = re.findall(r"(\d+\.\d+) %", line)
    assert set(table) == {"rdk-x5", "ara240"}
    for target, (real, quantized, compiled) in table.items():
        assert top1["original_float.onnx"] == real
        assert top1[f"quantized.{target}.onnx"] == quantized
        assert top1[f"digits.{target}.hybrid"] == compiled
        assert float(real) - float(compiled) <= 1.0


@pytest.mark.slow(cases=len(GUIDE))
@pytest.mark.parametrize(("page", "number"), GUIDE)
def test_what_the_guide_types(built: Workspace, page: str, number: int) -> None:
    (built.root / "benchmarks").symlink_to(REPO / "benchmarks")
    done = run(blocks(f"docs/{page}")[number], built.root, command_folder())
    assert done.returncode == 0, done.stdout + done.stderr


def headings(page: Path) -> set[str]:
    """The anchors of a page, as they are made of its headings outside of code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    for file, anchor in LINK.findall((REPO / "docs" / page).read_text()):
        linked = (REPO / "docs" / (file or page)).resolve()
        assert linked.exists(), file
        assert not anchor or anchor in headings(linked), f"{file}#{anchor}"


def test_the_guide_leads_to_every_page() -> None:
    linked = {file for file, _ in LINK.findall((REPO / "docs/guide.md").read_text())}
    assert set(PAGES) - {"guide.md"} <= linked


def test_the_guide_shows_the_project_as_it_is() -> None:
    shown = re.search(r"^```yaml\n(.*?)^```$", (REPO / "docs/guide.md").read_text(), re.M | re.S)
    assert shown is not None
    told = [line.split(" #")[0].rstrip() for line in shown[1].splitlines()]
    real = (REPO / "projects/digits/project.yaml").read_text().splitlines()
    assert [x for x in told if x and not x.startswith("#")] == [
        line.split(" #")[0].rstrip() for line in real if line and not line.startswith("#")
    ]
