"""The pages for contributors say what is so: the drawing, the paths, the version."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import npumake
from npumake.cli.main import VERBS

ROOT = Path(__file__).parents[1]
PACKAGE = Path(npumake.__file__).parent
sys.path.insert(0, str(ROOT / "docs"))

import floors  # noqa: E402

PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/architecture.md")
NAMED = re.compile(r"`([a-z_]+(?:/[\w.-]+)*/(?:[\w-]+\.\w+)?)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", re.MULTILINE)
WRITTEN = re.compile(r"^(?:__version__|VERSION) *= *[\"']\d+\.\d+\.\d+", re.MULTILINE)
VERB = re.compile(r"`npumake ([a-z_]+)")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_drawing_of_the_floors_is_that_of_the_code() -> None:
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    page = text("docs/architecture.md")
    assert floors.drawn(page, source) == page, "run: python docs/floors.py"


def test_every_room_is_in_the_drawing() -> None:
    drawing = floors.drawing((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    boxes = [line.split("│")[1] for line in drawing.splitlines() if "│" in line]
    rooms = re.findall(r"[a-z]+", " ".join(boxes))
    assert sorted(rooms) == sorted(room for floor in npumake.FLOORS for room in floor)


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    named = NAMED.findall(text(page))
    missing = [name for name in named if not any((at / name).exists() for at in (ROOT, PACKAGE))]
    assert missing == []


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_every_link_of_a_page_leads_to_a_file(page: str) -> None:
    links = [file for file, _ in LINK.findall(text(page)) if file]
    assert [file for file in links if not (ROOT / page).parent.joinpath(file).exists()] == []


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_every_verb_that_a_page_names_exists(page: str) -> None:
    assert set(VERB.findall(text(page))) <= set(VERBS)


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    assert RELEASE.findall(text("CHANGELOG.md"))[0] == project["version"]


def test_the_version_is_written_once() -> None:
    files = [*PACKAGE.rglob("*.py"), ROOT / "dodo.py"]
    written = [file.name for file in files if WRITTEN.search(file.read_text(encoding="utf-8"))]
    assert written == []


def test_the_package_ships_its_types() -> None:
    data = tomllib.loads(text("pyproject.toml"))["tool"]["setuptools"]["package-data"]
    assert (PACKAGE / "py.typed").is_file()
    assert "py.typed" in data["*"]
