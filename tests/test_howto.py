"""Each page of docs/howto, and the quick start, does what it says: its commands run, in order, and
print the lines that it shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from forks import command_folder
from test_readme import BLOCKS, run
from workspaces import REPO, Workspace

DOCS = REPO / "docs"
PAGES = sorted([*DOCS.glob("howto/*.md"), DOCS / "quickstart.md"])
OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e-?\d+)?")
PICTURES = 8


@pytest.fixture
def with_model(built: Workspace) -> Path:
    """projects/digits built, and a reader's own model and pictures beside it."""
    detector = REPO / "projects" / "shapes-detector"
    shutil.copy(detector / "model.onnx", built.root)
    (built.root / "photos").mkdir()
    for picture in sorted((detector / "samples").glob("*.jpg"))[:PICTURES]:
        shutil.copy(picture, built.root / "photos")
    return built.root


def pattern(line: str) -> str:
    """A line as another machine may print it: any number, any spaces, and anything for `…`."""
    words = NUMBER.sub("0", line).split()
    return r"\s+".join(re.escape(word).replace("…", ".*") for word in words)


@pytest.mark.slow(cases=len(PAGES))
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_prints_what_it_shows(with_model: Path, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    done = run("".join(BLOCKS.findall(text)), with_model, command_folder())
    assert done.returncode == 0, done.stdout + done.stderr
    printed = [NUMBER.sub("0", line) for line in (done.stdout + done.stderr).splitlines()]
    blocks = OUTPUT.findall(text.partition("```sh")[2])  # those before show an installation
    shown = [line for block in blocks for line in block.splitlines() if line.strip()]
    missing = [
        line
        for line in shown
        if not any(re.fullmatch(rf"\s*{pattern(line)}\s*", x) for x in printed)
    ]
    assert missing == [], [line.strip() for line in printed]


def test_there_are_ten_pages_of_one_task_each() -> None:
    pages = [page for page in PAGES if page.parent.name == "howto" and page.stem != "index"]
    assert len(pages) >= 10
    assert all(BLOCKS.findall(page.read_text(encoding="utf-8")) for page in pages)
    assert all(len(page.read_text(encoding="utf-8").splitlines()) <= 60 for page in pages)
