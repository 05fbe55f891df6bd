"""The site: builds without a warning, every link leads somewhere, and the reference is complete."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from npumake.cli.main import ALIASES, VERBS
from npumake.project.schema import editor_schema
from npumake.targets.reader import target_names
from workspaces import REPO

sys.path.insert(0, str(REPO / "docs"))

import reference

LINKS = {"href", "src"}


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in LINKS and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module, reason="of npumake[docs]")
    out = tmp_path_factory.mktemp("site") / "html"
    done = subprocess.run(
        [sys.executable, REPO / "docs/pages.py", "--out", out],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return out


@pytest.mark.slow
def test_every_link_of_the_site_leads_to_a_file_and_an_anchor(site: Path) -> None:
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    broken = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            linked = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = pages.get(linked)
            is_anchor = not parts.fragment or not target or parts.fragment in target.anchors
            if not linked.is_file() or not is_anchor:
                broken.append(f"{file.name}: {link}")
    assert broken == []


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*.html"):
        assert not [link for link in Page(file).links if link.startswith(("//", "http:"))]
    scripts = [x for file in site.rglob("*.html") for x in Page(file).links if x.endswith(".js")]
    assert scripts
    assert not [link for link in scripts if urlsplit(link).netloc]


@pytest.mark.slow
def test_every_page_of_the_documents_is_a_page_of_the_site(site: Path) -> None:
    pages = [file.relative_to(REPO / "docs") for file in (REPO / "docs").rglob("*.md")]
    assert [page for page in pages if not (site / page).with_suffix(".html").is_file()] == []


def keys(schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, inner in schema.get("properties", {}).items():
        yield f"{prefix}{key}"
        yield from keys(inner, f"{prefix}{key}.")


def test_the_reference_has_every_key_of_the_schema() -> None:
    page = reference.pages()["project.md"]
    for section, inner in editor_schema(target_names())["properties"].items():
        assert f"\n## `{section}`\n" in page
        _, _, after = page.partition(f"\n## `{section}`\n")
        part = after.partition("\n## ")[0]
        assert [key for key in keys(inner) if f"| `{key}` |" not in part] == []


def test_the_reference_has_every_verb_with_its_options_and_every_chip() -> None:
    pages = reference.pages()
    assert [verb for verb in VERBS if f"\n## npumake {verb}\n" not in pages["commands.md"]] == []
    assert [name for name in ALIASES if f"| `npumake {name}` |" not in pages["commands.md"]] == []
    assert [name for name in target_names() if f"| `{name}` |" not in pages["chips.md"]] == []


def test_a_row_of_the_reference_is_one_row_of_a_table() -> None:
    for page in reference.pages().values():
        tables = [line.replace("\\|", "") for line in page.splitlines() if line.startswith("|")]
        widths = {line.count("|") for line in tables}
        assert widths <= {3, 5, 9}
